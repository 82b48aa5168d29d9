//! Blocks of a README that are generated: written between markers, and compared with what is there.

use crate::margin::{self, is_more};

/// The cell of what was not measured.
pub const UNKNOWN: &str = "?";

/// Where a block begins and ends.
fn markers(block: &str) -> (String, String) {
    (
        format!("<!-- generated: {block} -->\n"),
        format!("<!-- /generated: {block} -->"),
    )
}

/// The block that stands in the text.
///
/// # Errors
///
/// When there is none of this name.
pub fn block<'a>(text: &'a str, name: &str) -> Result<&'a str, String> {
    let (begin, end) = markers(name);
    text.split_once(&begin)
        .and_then(|(_, rest)| rest.split_once(&end))
        .map(|(block, _)| block)
        .ok_or_else(|| format!("no `{}` with `{end}` below it", begin.trim_end()))
}

/// The text with another block.
///
/// # Errors
///
/// When there is none of this name.
pub fn replaced(text: &str, name: &str, with: &str) -> Result<String, String> {
    let old = block(text, name)?;
    let (begin, end) = markers(name);
    Ok(text.replacen(
        &format!("{begin}{old}{end}"),
        &format!("{begin}{with}{end}"),
        1,
    ))
}

/// What differs between a block and what it should be, a line each.
///
/// Cells of counts (`1,234 · 5`: instructions and allocations) may not differ in allocations, and in
/// instructions by the margin, both ways; those of others, which are not printed in bold, by 15 %,
/// since some look at the time of the day. Where the last line of the block, which names the
/// compiler, is another, instructions are not compared. Cells that begin with `yes` or `no` are
/// alike if they begin with the same. A `?` stands for what was not measured. Everything else is to
/// be equal.
#[must_use]
pub fn differences(stands: &str, should: &str) -> Vec<String> {
    let same_compiler = last_line(stands) == last_line(should);
    let mut lines: (Vec<&str>, Vec<&str>) = (stands.lines().collect(), should.lines().collect());
    if !same_compiler {
        for lines in [&mut lines.0, &mut lines.1] {
            lines.retain(|line| line.starts_with('|'));
        }
    }
    if lines.0.len() != lines.1.len() {
        return vec![format!("{} lines, not {}", lines.0.len(), lines.1.len())];
    }
    let differ = |stands: &str, should: &str| {
        let (stands, should) = (cells(stands), cells(should));
        stands.len() != should.len()
            || stands
                .iter()
                .zip(&should)
                .any(|(stands, should)| !are_alike(stands, should, same_compiler))
    };
    lines
        .0
        .into_iter()
        .zip(lines.1)
        .filter(|(stands, should)| differ(stands, should))
        .map(|(stands, should)| format!("{stands}\nshould be:\n{should}"))
        .collect()
}

fn last_line(block: &str) -> Option<&str> {
    block.lines().rfind(|line| !line.is_empty())
}

fn cells(line: &str) -> Vec<&str> {
    line.split('|').map(str::trim).collect()
}

fn are_alike(stands: &str, should: &str, same_compiler: bool) -> bool {
    if stands == should || should == UNKNOWN {
        return true;
    }
    if let (Some((a, heap)), Some((b, heap_now))) = (counts(stands), counts(should)) {
        let margin = if stands.starts_with("**") {
            margin::OURS
        } else {
            15
        };
        let is_near = !is_more(a, b, margin) && !is_more(b, a, margin);
        return heap == heap_now && (is_near || !same_compiler);
    }
    verdict(stands).is_some_and(|stands| verdict(should) == Some(stands))
}

/// Instructions and allocations of a cell.
fn counts(cell: &str) -> Option<(u64, u64)> {
    let (instructions, allocations) = cell.trim_matches('*').split_once(" · ")?;
    let instructions = instructions.replace(',', "").parse().ok()?;
    Some((instructions, allocations.parse().ok()?))
}

/// The answer that a cell begins with.
fn verdict(cell: &str) -> Option<&str> {
    let cell = cell.trim_matches('*');
    let word = cell.split([':', ' ', '*']).next()?;
    matches!(word, "yes" | "no").then_some(word)
}

/// `1234567` as `1,234,567`.
#[must_use]
pub fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const README: &str = "before\n<!-- generated: counts -->\n| a | **1,000 · 0** |\n\nrustc 1\n\
                          <!-- /generated: counts -->\nafter\n";

    fn differences_to(should: &str) -> usize {
        differences(block(README, "counts").unwrap(), should).len()
    }

    #[test]
    fn a_block_is_replaced_and_the_rest_stays() {
        let text = replaced(README, "counts", "| b |\n").unwrap();
        assert_eq!(block(&text, "counts").unwrap(), "| b |\n");
        assert!(text.starts_with("before\n") && text.ends_with("\nafter\n"));
    }

    #[test]
    fn a_block_that_is_not_there_is_an_error() {
        assert!(block(README, "times").is_err());
    }

    #[test]
    fn instructions_may_differ_a_little() {
        assert_eq!(differences_to("| a | **1,020 · 0** |\n\nrustc 1\n"), 0);
        assert_eq!(differences_to("| a | **985 · 0** |\n\nrustc 1\n"), 0);
    }

    #[test]
    fn those_of_others_may_differ_more() {
        let stands = "| a | 295 · 0 |\n\nrustc 1\n";
        let near = "| a | 324 · 0 |\n\nrustc 1\n";
        let far = "| a | 395 · 0 |\n\nrustc 1\n";
        assert!(differences(stands, near).is_empty());
        assert_eq!(differences(stands, far).len(), 1);
    }

    #[test]
    fn what_was_not_measured_is_not_compared() {
        assert_eq!(differences_to("| a | ? |\n\nrustc 1\n"), 0);
    }

    #[test]
    fn more_than_that_is_a_difference_either_way() {
        assert_eq!(differences_to("| a | **1,100 · 0** |\n\nrustc 1\n"), 1);
        assert_eq!(differences_to("| a | **900 · 0** |\n\nrustc 1\n"), 1);
    }

    #[test]
    fn allocations_and_words_are_exact() {
        assert_eq!(differences_to("| a | **1,000 · 1** |\n\nrustc 1\n"), 1);
        assert_eq!(differences_to("| b | **1,000 · 0** |\n\nrustc 1\n"), 1);
        assert_eq!(differences_to("| a | – |\n\nrustc 1\n"), 1);
    }

    #[test]
    fn instructions_of_another_compiler_are_not_compared() {
        assert_eq!(differences_to("| a | **2,000 · 0** |\n\nrustc 2\n"), 0);
        assert_eq!(differences_to("| a | **2,000 · 1** |\n\nrustc 2\n"), 1);
    }

    #[test]
    fn of_an_answer_only_the_answer_is_compared() {
        let stands = "| b | **yes**: 20 | no (1,130 bytes) |\n";
        let alike = "| b | **yes**: 21 | no (1,131 bytes) |\n";
        let other = "| b | **yes**: 20 | yes |\n";
        assert!(differences(stands, alike).is_empty());
        assert_eq!(differences(stands, other).len(), 1);
    }

    #[test]
    fn thousands_are_told_apart() {
        let told: Vec<_> = [0, 999, 1_000, 12_345, 1_234_567].map(thousands).into();
        assert_eq!(told, ["0", "999", "1,000", "12,345", "1,234,567"]);
    }
}
