//! What needs no GPU: the ops' host maths over the case tables, and the references
//! against central differences.

use super::{Case, Report};
use wgrad::op::Host;

/// Holds each reference to what is known of its case, and the op's `compute` (the
/// maths of `path: "host"`) to the reference.
pub fn check_compute(cases: &[Case]) {
    let mut report = Report::default();
    for case in cases {
        report.judge_reference(case);
        let mut inputs = Vec::new();
        for i in 0..case.inputs.len() {
            let (values, spec) = case.input(i);
            let mut host = Host::zeros(spec).expect("a case is small");
            host.bytes_mut().copy_from_slice(values.bytes());
            inputs.push(host);
        }
        let specs = case.op.infer(&case.specs()).unwrap_or_else(|e| panic!("{}: {e}", case.name));
        let mut outputs: Vec<Host> =
            specs.into_iter().map(|spec| Host::zeros(spec).expect("a case is small")).collect();
        assert_eq!(outputs.len(), case.wants.len(), "{}: number of results", case.name);
        let fault = case.op.compute(&inputs, &mut outputs).err();
        if fault != case.fault {
            report.fail(format!("{}: fault {fault:?}, want {:?}", case.name, case.fault));
        }
        for (i, output) in outputs.iter().enumerate() {
            report.judge(case, "compute", i, output.words());
        }
    }
    report.print();
    report.finish();
}

/// Holds `gradient` to the derivatives of `loss` at `x`, by central differences over
/// five points: exact for linear functions, good to h⁴ for others.
pub fn check_gradient(what: &str, x: &[f64], gradient: &[f64], loss: impl Fn(&[f64]) -> f64) {
    assert_eq!(x.len(), gradient.len(), "{what}: number of gradients");
    let h = 1e-3;
    let mut faults = Vec::new();
    for (i, &got) in gradient.iter().enumerate() {
        let at = |steps: f64| {
            let mut moved = x.to_vec();
            moved[i] += steps * h;
            loss(&moved)
        };
        let want = (8.0 * (at(1.0) - at(-1.0)) - (at(2.0) - at(-2.0))) / (12.0 * h);
        if (got - want).abs() > 1e-9 + 1e-9 * want.abs() {
            faults.push(format!("[{i}] is {got}, by differences {want}"));
        }
    }
    assert!(faults.is_empty(), "{what}:\n{}", faults.join("\n"));
}
