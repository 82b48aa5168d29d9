//! The storage emulator, as a child process.
//!
//! It is installed by `scripts/setup`, from the lock file in `tests/azurite`. It checks signatures as
//! the real service does, but takes writes at the secondary and has no lag; see
//! [`front`](crate::front) and [`store`](crate::store) for those.

use crate::{line::Port, tls::TestCa};
use rustix::process::{Pid, Signal, kill_process};
use std::{
    fs, io,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};
use tokio::{
    io::{AsyncBufReadExt, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout, Command},
    time::timeout,
};

/// The account of an emulator that was given no other.
pub const ACCOUNT: &str = "devstoreaccount1";

/// The key of [`ACCOUNT`], which the emulator's documentation publishes.
pub const KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

/// How long it may take to start or to end; usually it is one second.
const PATIENCE: Duration = Duration::from_secs(60);

/// Ends the emulator with the test that started it, however that test ends: its standard input is a
/// pipe that only the test holds open. Without `unref` it could not end by itself when asked to.
const END_WITH_PARENT: &str =
    "data:text/javascript,process.stdin.on('end',()=>process.exit(3)).resume().unref()";

/// How an emulator is started.
#[derive(Clone, Debug, Default)]
pub struct AzuriteOptions {
    location: Option<PathBuf>,
    accounts: Vec<(String, String)>,
    directory: Option<PathBuf>,
    tls: Option<(String, String)>,
}

impl AzuriteOptions {
    /// In memory, with [`ACCOUNT`] and [`KEY`].
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Keeps data in this folder. It is saved at [`Azurite::terminate`], and some seconds after each
    /// write; [`Azurite::kill`] loses what is younger.
    #[must_use]
    pub fn location(mut self, folder: impl Into<PathBuf>) -> Self {
        self.location = Some(folder.into());
        self
    }

    /// Adds an account, with a key in Base64; then [`ACCOUNT`] does not exist unless it is added too.
    #[must_use]
    pub fn account(mut self, name: impl Into<String>, key: impl Into<String>) -> Self {
        self.accounts.push((name.into(), key.into()));
        self
    }

    /// Speaks TLS itself, with a certificate of `ca` for `names`, and takes bearer tokens, of which it
    /// checks the claims and not the signature. It takes none without TLS, nor behind a front that
    /// ends TLS: put fronts before it that pass bytes on.
    ///
    /// # Errors
    ///
    /// When a name is not one that a certificate can hold.
    pub fn tokens<N: Into<String>>(
        mut self,
        ca: &TestCa,
        names: impl IntoIterator<Item = N>,
    ) -> io::Result<Self> {
        self.tls = Some(ca.server_pem(names)?);
        Ok(self)
    }

    /// Where `node_modules` is; default: `tests/azurite` of this workspace.
    #[must_use]
    pub fn directory(mut self, directory: impl Into<PathBuf>) -> Self {
        self.directory = Some(directory.into());
        self
    }

    fn script(&self) -> Result<PathBuf, String> {
        let directory = self
            .directory
            .clone()
            .unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/azurite"));
        let script = directory.join("node_modules/azurite/dist/src/azurite.js");
        match fs::metadata(&script) {
            Ok(_) => Ok(script),
            Err(error) => Err(format!(
                "the storage emulator is not installed: {}: {error}; run scripts/setup",
                script.display()
            )),
        }
    }
}

/// A running emulator of blob, queue and table storage. Dropped, it is killed.
///
/// Its ports stay the same over [`kill`](Self::kill), [`terminate`](Self::terminate) and
/// [`restart`](Self::restart); while it does not run, connecting to them is refused.
#[derive(Debug)]
pub struct Azurite {
    options: AzuriteOptions,
    blob: Port,
    queue: Port,
    table: Port,
    running: Option<Running>,
}

#[derive(Debug)]
struct Running {
    child: Child,
    // Kept apart from the child, which would close it when it is waited for: that is the sign to
    // end at once, and an emulator that was asked to end must have time to save.
    _alive: ChildStdin,
}

impl Azurite {
    /// Starts an emulator and returns when all of its services answer.
    ///
    /// # Errors
    ///
    /// When node or the emulator is not installed (the message says what to run), or when it ends or
    /// says nothing for a minute.
    pub async fn start(options: AzuriteOptions) -> Result<Self, String> {
        let port = || Port::reserve().map_err(|error| format!("no free loopback port: {error}"));
        let mut this = Self {
            options,
            blob: port()?,
            queue: port()?,
            table: port()?,
            running: None,
        };
        this.restart().await?;
        Ok(this)
    }

    /// Starts it again, on the same ports, after [`kill`](Self::kill) or
    /// [`terminate`](Self::terminate). Does nothing while it runs.
    ///
    /// # Errors
    ///
    /// As [`start`](Self::start).
    pub async fn restart(&mut self) -> Result<(), String> {
        if self.running.is_none() {
            self.running = Some(self.launch().await?);
        }
        Ok(())
    }

    /// Where blob storage listens.
    #[must_use]
    pub const fn blob_addr(&self) -> SocketAddr {
        self.blob.addr()
    }

    /// Where queue storage listens.
    #[must_use]
    pub const fn queue_addr(&self) -> SocketAddr {
        self.queue.addr()
    }

    /// Where table storage listens.
    #[must_use]
    pub const fn table_addr(&self) -> SocketAddr {
        self.table.addr()
    }

    /// Kills it (SIGKILL) and returns when it is gone: a crash.
    ///
    /// # Errors
    ///
    /// When the operating system refuses.
    pub async fn kill(&mut self) -> io::Result<()> {
        match self.running.take() {
            Some(mut running) => running.child.kill().await,
            None => Ok(()),
        }
    }

    /// Asks it to end (SIGTERM), so that it saves its data, and returns when it is gone.
    ///
    /// # Errors
    ///
    /// When the operating system refuses, and when it has not ended within a minute; it is killed
    /// then.
    pub async fn terminate(&mut self) -> io::Result<()> {
        self.signal(Signal::TERM)?;
        // A stopped process gets the signal when it goes on.
        self.thaw()?;
        match self.running.take() {
            Some(mut running) => {
                timeout(PATIENCE, running.child.wait()).await??;
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Stops it (SIGSTOP): a black hole. The kernel still accepts connections; nothing answers.
    ///
    /// # Errors
    ///
    /// When the operating system refuses.
    pub fn freeze(&self) -> io::Result<()> {
        self.signal(Signal::STOP)
    }

    /// Lets it go on (SIGCONT) after [`freeze`](Self::freeze).
    ///
    /// # Errors
    ///
    /// When the operating system refuses.
    pub fn thaw(&self) -> io::Result<()> {
        self.signal(Signal::CONT)
    }

    fn signal(&self, signal: Signal) -> io::Result<()> {
        let pid = self
            .running
            .as_ref()
            .and_then(|running| running.child.id())
            .and_then(|id| i32::try_from(id).ok())
            .and_then(Pid::from_raw);
        match pid {
            Some(pid) => Ok(kill_process(pid, signal)?),
            None => Ok(()),
        }
    }

    async fn launch(&self) -> Result<Running, String> {
        let mut command = Command::new("node");
        command
            .args(["--import", END_WITH_PARENT])
            .arg(self.options.script()?)
            .args(["--skipApiVersionCheck", "--disableTelemetry", "--silent"]);
        for (name, port) in [
            ("--blobPort", &self.blob),
            ("--queuePort", &self.queue),
            ("--tablePort", &self.table),
        ] {
            command.arg(name).arg(port.addr().port().to_string());
        }
        match &self.options.location {
            Some(folder) => command.arg("--location").arg(folder),
            None => command.arg("--inMemoryPersistence"),
        };
        let mut files = Vec::new();
        if let Some((certificate, key)) = &self.options.tls {
            command.args(["--oauth", "basic"]);
            for (option, content) in [("--cert", certificate), ("--key", key)] {
                let name = format!(
                    "tower-geo-azurite-{}-{}{option}.pem",
                    std::process::id(),
                    self.blob.addr().port()
                );
                let file = Removed(std::env::temp_dir().join(name));
                fs::write(&file.0, content)
                    .map_err(|error| format!("{}: {error}", file.0.display()))?;
                command.arg(option).arg(&file.0);
                files.push(file);
            }
        }
        if !self.options.accounts.is_empty() {
            let accounts: Vec<String> = self
                .options
                .accounts
                .iter()
                .map(|(name, key)| format!("{name}:{key}"))
                .collect();
            command.env("AZURITE_ACCOUNTS", accounts.join(";"));
        }
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true);

        let mut child = command.spawn().map_err(|error| {
            format!("cannot run node, which the storage emulator needs (version 20 or newer): {error}; see scripts/setup")
        })?;
        let alive = child.stdin.take().ok_or("the emulator has no input")?;
        let output = child.stdout.take().ok_or("the emulator has no output")?;
        let mut output = BufReader::new(output).lines();
        match timeout(PATIENCE, listening(&mut output)).await {
            Ok(Ok(())) => {
                // It would block, or die of a broken pipe, if nobody read on.
                tokio::spawn(async move { while let Ok(Some(_)) = output.next_line().await {} });
                Ok(Running {
                    child,
                    _alive: alive,
                })
            }
            Ok(Err(said)) => Err(format!(
                "the storage emulator ended instead of starting; it said: {said}"
            )),
            Err(_) => Err(format!(
                "the storage emulator did not start within {} s",
                PATIENCE.as_secs()
            )),
        }
    }
}

/// A file that is needed while the emulator starts.
struct Removed(PathBuf);

impl Drop for Removed {
    fn drop(&mut self) {
        // What is left over in the folder for such files does no harm.
        let _ = fs::remove_file(&self.0);
    }
}

/// Reads until each of the three services has said that it listens; else all that was said.
async fn listening(output: &mut Lines<BufReader<ChildStdout>>) -> Result<(), String> {
    let mut said = String::new();
    let mut services = 0;
    while let Ok(Some(line)) = output.next_line().await {
        if line.contains("successfully listening") {
            services += 1;
            if services == 3 {
                return Ok(());
            }
        }
        said.push_str(&line);
        said.push('\n');
    }
    Err(said)
}
