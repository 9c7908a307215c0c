//! Comparing results with right values, and telling how close they came.

use super::{Bound, Case, say};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The largest errors of one result of one op on one path.
#[derive(Default)]
struct Errors {
    abs: f64,
    /// Of the largest right value of the result: near a zero crossing the error of a
    /// sum has nothing to do with the value there.
    rel: f64,
    /// Of the bound; 1 is the most allowed.
    fraction: f64,
    cases: usize,
}

/// What a test found: its errors, and everything wrong at once rather than the first.
#[derive(Default)]
pub struct Report {
    errors: BTreeMap<(&'static str, &'static str, &'static str), Errors>,
    failures: Vec<String>,
}

/// Not a number, by its bits: compilers may fold `x != x` away.
fn is_nan(bits: u32) -> bool {
    bits & 0x7f80_0000 == 0x7f80_0000 && bits & 0x007f_ffff != 0
}

/// How far `got` is from `want`; infinite where one is finite and the other is not,
/// or where they are different infinities.
fn distance(got: u32, want: f64) -> f64 {
    let value = f64::from(f32::from_bits(got));
    match (is_nan(got), want.is_nan()) {
        (true, true) => 0.0,
        (false, false) if value == want => 0.0,
        (false, false) if value.is_finite() && want.is_finite() => (value - want).abs(),
        _ => f64::INFINITY,
    }
}

/// The value to compare with: for equality as f32, since that is what a result is.
fn target(want: f64, bound: Bound) -> f64 {
    if bound == Bound::EXACT { f64::from(want as f32) } else { want }
}

impl Report {
    /// Notes what is wrong; the test fails at its end.
    pub fn fail(&mut self, fault: String) {
        self.failures.push(fault);
    }

    /// Compares result `output` of `case` with all that is known of it.
    pub fn judge(&mut self, case: &Case, path: &'static str, output: usize, got: &[u32]) {
        let want = &case.wants[output];
        let name = case.op.outputs()[output];
        if got.len() != want.values.len() {
            let fault =
                format!("{}: {name} has {} values, want {}", place(case, path), got.len(), want.values.len());
            return self.fail(fault);
        }
        let entry = self.errors.entry((case.op.name(), path, name)).or_default();
        let finite = |value: &&f64| value.is_finite();
        let largest = want.values.iter().filter(finite).fold(0.0f64, |a, b| a.max(b.abs()));
        for (&bits, &value) in got.iter().zip(&want.values) {
            let error = distance(bits, target(value, want.bound));
            if error > 0.0 {
                entry.abs = entry.abs.max(error);
                entry.rel = entry.rel.max(error / largest);
                entry.fraction = entry.fraction.max(error / want.bound.of(value));
            }
        }
        entry.cases += 1;
        self.compare(&format!("{}: {name}", place(case, path)), 0, got, &want.values, want.bound);
        for known in case.known.iter().filter(|known| known.output == output) {
            let got = &got[known.from..known.from + known.values.len()];
            let what = format!("{}: {name}, as reported,", place(case, path));
            self.compare(&what, known.from, got, &known.values, known.bound);
        }
    }

    /// Holds the reference itself to what is known.
    pub fn judge_reference(&mut self, case: &Case) {
        for known in &case.known {
            let want = &case.wants[known.output].values[known.from..known.from + known.values.len()];
            let what = format!("{}: {}", place(case, "reference"), case.op.outputs()[known.output]);
            for (i, (&got, &want)) in want.iter().zip(&known.values).enumerate() {
                let bound = known.reference_bound;
                let (got, at) = (target(got, bound), known.from + i);
                if (got - want).abs() > bound.of(want) || got.is_nan() != want.is_nan() {
                    self.fail(format!("{what}[{at}] is {got:e}, want {want:e}"));
                }
            }
        }
    }

    fn compare(&mut self, what: &str, from: usize, got: &[u32], want: &[f64], bound: Bound) {
        let wrong = |&(_, (&got, &want)): &(usize, (&u32, &f64))| {
            let error = distance(got, target(want, bound));
            // An infinite want has an infinite bound, which must not excuse anything.
            error > bound.of(want) || error == f64::INFINITY
        };
        let mut faults = got.iter().zip(want).enumerate().filter(wrong);
        if let Some((i, (&bits, want))) = faults.next() {
            let got = f32::from_bits(bits);
            let mut text = format!("{what}[{}]: got {got:e} ({bits:#010x}), want {want:e}", from + i);
            let _ = write!(text, ", {bound:?}; {} more values wrong", faults.count());
            self.fail(text);
        }
    }

    /// Fails the test if anything was wrong, with all of it.
    pub fn finish(&mut self) {
        if self.failures.is_empty() {
            return;
        }
        let shown = self.failures.iter().take(20).map(String::as_str).collect::<Vec<_>>().join("\n");
        panic!("{} faults:\n{shown}", self.failures.len());
    }

    /// Prints the largest errors: `error: rmsNormBackward gpu dx 3.1e-7 abs, …`.
    pub fn print(&self) {
        for ((op, path, output), e) in &self.errors {
            let (abs, rel, part) = (e.abs, e.rel, e.fraction);
            say(&format!(
                "error: {op} {path} {output} {abs:.1e} abs, {rel:.1e} of the largest value, {part:.3} of the bound over {} cases",
                e.cases
            ));
        }
    }
}

fn place(case: &Case, path: &str) -> String {
    format!("{} ({path}), case {}", case.op.name(), case.name)
}

#[cfg(all(test, not(target_arch = "wasm32")))]
mod tests {
    use super::*;

    #[test]
    fn non_finite_values_only_match_their_own_kind() {
        let (nan, inf) = (f32::NAN.to_bits(), f32::INFINITY.to_bits());
        for (got, want, equal) in [
            (nan, f64::NAN, true),
            (nan, 1.0, false),
            (1f32.to_bits(), f64::NAN, false),
            (inf, f64::INFINITY, true),
            (inf, f64::NEG_INFINITY, false),
            (inf, f64::NAN, false),
            (0, f64::INFINITY, false),
            (inf, 1e30, false),
        ] {
            let mut report = Report::default();
            report.compare("it", 0, &[got], &[want], Bound::USUAL);
            assert_eq!(report.failures.is_empty(), equal, "{got:#x} and {want}: {:?}", report.failures);
        }
    }

    #[test]
    fn the_bound_is_the_promised_one() {
        for (got, want, right) in
            [(0.9e-6, 0.0, true), (1.1e-6, 0.0, false), (100.001, 100.0, true), (100.002, 100.0, false)]
        {
            let mut report = Report::default();
            report.compare("it", 7, &[(got as f32).to_bits()], &[want], Bound::USUAL);
            assert_eq!(report.failures.is_empty(), right, "{:?}", report.failures);
        }
    }
}
