//! Calls that must be refused: the exact error, on both paths, and nothing changed.

use super::Lab;
use std::rc::Rc;
use wgrad::error::{Code, Error};
use wgrad::op::{self, Op, Path};
use wgrad::tensor::Tensor;

impl Lab {
    /// The call fails before anything is queued, with `code` and the message
    /// "`operand` `fault`" under the op's name, and takes no memory.
    pub fn refuses(
        &mut self,
        op: impl Op,
        inputs: &[&Tensor],
        out: &[Option<&Tensor>],
        (code, operand, fault): (Code, &str, &str),
    ) {
        let error = Error::operand(code, operand, fault);
        self.refuses_with(op, inputs, out, error);
    }

    /// [`Lab::refuses`] for an error that names no operand.
    pub fn refuses_with(&mut self, op: impl Op, inputs: &[&Tensor], out: &[Option<&Tensor>], error: Error) {
        let op: Rc<dyn Op> = Rc::new(op);
        let want = error.in_op(op.name());
        for path in [Path::Gpu, Path::Host] {
            let before = (self.arena.memory(), self.gpu.memory());
            let got = op::run(op.clone(), inputs, out, path).err();
            if got.as_ref() != Some(&want) {
                self.report.fail(format!("{} ({path:?}): {got:?}, want {want:?}", op.name()));
            }
            let after = (self.arena.memory(), self.gpu.memory());
            if before != after {
                self.report.fail(format!("{want} ({path:?}): memory went from {before:?} to {after:?}"));
            }
        }
    }
}
