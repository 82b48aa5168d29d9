// Answers questions about the workspace from `cargo metadata`, for scripts/check.
//
//     cargo metadata --format-version 1 --all-features | node scripts/workspace.mjs QUESTION
//
//     published   the crates that are published, one a line
//     libraries   those of them that are libraries
//     features    CRATE FEATURE, for every feature of the published crates
//     examples    CRATE KIND NAME, for every example program (KIND: bin or example)
//     clients     the crates about clients that people use, which are no default members
//
// Of the last two, those that need a later Rust than there is are left out, and named on stderr.
//
//     msrv        fails when a library states no Rust version, or a dependency needs a later one
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { relative, sep } from 'node:path';

const metadata = JSON.parse(readFileSync(0, 'utf8'));
const members = metadata.packages.filter((p) => metadata.workspace_members.includes(p.id));
const published = members.filter((p) => p.publish === null || p.publish.length > 0);
const isLibrary = (p) => p.targets.some((t) => t.kind.includes('lib'));
const libraries = published.filter(isLibrary);

// Published libraries have users with older compilers; programs are built by us.
const promised = libraries.filter((p) => !p.targets.some((t) => t.kind.includes('bin')));

function parts(version) {
  const numbers = version.split(/[-+]/)[0].split('.').map(Number);
  return [numbers[0], numbers[1] ?? 0, numbers[2] ?? 0];
}

function isLater(a, b) {
  const [x, y] = [parts(a), parts(b)];
  const i = x.findIndex((n, at) => n !== y[at]);
  return i >= 0 && x[i] > y[i];
}

// Examples below clients that need a later Rust than we do need it, too.
function buildable(packages) {
  const rust = execFileSync('rustc', ['--version'], { encoding: 'utf8' }).split(' ')[1];
  return packages.filter((p) => {
    const late = p.rust_version !== null && isLater(p.rust_version, rust);
    if (late) console.error(`${p.name} is left out: it needs Rust ${p.rust_version}`);
    return !late;
  });
}

const CLIENTS = ['geo-proxy', 'tower-geo-clients', 'under-aws-s3', 'under-opendal'];

// What is compiled into a crate: normal and build dependencies, all the way down.
function closure(id) {
  const nodes = new Map(metadata.resolve.nodes.map((n) => [n.id, n]));
  const seen = new Set();
  const queue = [id];
  while (queue.length > 0) {
    const next = queue.pop();
    if (seen.has(next)) continue;
    seen.add(next);
    for (const dep of nodes.get(next)?.deps ?? []) {
      // `--cfg loom` is for our own model checks.
      const kinds = dep.dep_kinds.filter((k) => k.kind !== 'dev' && !/\bloom\b/.test(k.target ?? ''));
      if (kinds.length > 0) queue.push(dep.pkg);
    }
  }
  return metadata.packages.filter((p) => seen.has(p.id));
}

function msrv() {
  let failed = false;
  const complain = (text) => {
    failed = true;
    console.error(text);
  };
  for (const library of promised) {
    if (library.rust_version === null) {
      complain(`${library.name}: no rust-version in its manifest`);
      continue;
    }
    const late = closure(library.id).filter(
      (p) => p.rust_version !== null && isLater(p.rust_version, library.rust_version),
    );
    for (const p of late) {
      complain(
        `${library.name} promises Rust ${library.rust_version}, but Cargo.lock has ${p.name} ${p.version}, which needs ${p.rust_version}`,
      );
    }
    if (late.length === 0) console.log(`${library.name}: Rust ${library.rust_version}`);
  }
  return failed ? 1 : 0;
}

const questions = {
  published: () => published.forEach((p) => console.log(p.name)),
  libraries: () => promised.forEach((p) => console.log(p.name)),
  features: () => {
    for (const p of published) {
      for (const feature of Object.keys(p.features).sort()) {
        if (feature !== 'default') console.log(`${p.name} ${feature}`);
      }
    }
  },
  examples: () => {
    for (const p of buildable(members)) {
      const folder = relative(metadata.workspace_root, p.manifest_path).split(sep)[0];
      for (const t of p.targets) {
        if (t.kind.includes('example')) console.log(`${p.name} example ${t.name}`);
        if (folder === 'examples' && t.kind.includes('bin')) console.log(`${p.name} bin ${t.name}`);
      }
    }
  },
  clients: () => buildable(members.filter((p) => CLIENTS.includes(p.name))).forEach((p) => console.log(p.name)),
  msrv,
};

const question = questions[process.argv[2]];
if (question === undefined) {
  console.error(`usage: node scripts/workspace.mjs ${Object.keys(questions).join('|')}`);
  process.exit(2);
}
process.exitCode = question() ?? 0;
