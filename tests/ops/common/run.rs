//! Running cases on both paths. Reading back takes up to 90 ms however small it is,
//! so the results of many cases are copied aside and read together.

use super::memory::Guarded;
use super::{Case, Input, Lab};
use std::future::Future;
use std::pin::Pin;
use wgrad::error::{Error, Result};
use wgrad::gpu::Span;
use wgrad::op::{self, Path};
use wgrad::shape::{Dtype, Shape, Spec};
use wgrad::tensor::Tensor;

/// Cases and bytes that are read together at most.
const BATCH: (usize, u64) = (100, 2 << 20);

type Pending<'a> = Pin<Box<dyn Future<Output = Result<Vec<Tensor>>> + 'a>>;

impl Lab {
    /// Holds every case to its right values on the GPU and on the host path: from
    /// poisoned memory, twice with the same bits, with and without `out`, the operands
    /// and the memory around the results unchanged. Everything wrong is told at the end.
    pub async fn check(&mut self, cases: &[Case]) {
        for case in cases {
            self.report.judge_reference(case);
        }
        for batch in batches(cases) {
            self.check_gpu(batch).await;
            self.check_host(batch).await;
        }
        self.report.finish();
    }

    async fn check_gpu(&mut self, batch: &[Case]) {
        let mut kept = Vec::new();
        for case in batch {
            kept.extend(self.record(case).await);
        }
        if let Some(fault) = &batch[0].fault {
            // Reported once, by the next call that waits; the values stay readable.
            let told = self.fetch(&kept).await.err();
            self.expect_fault(&batch[0], "gpu", fault, told);
        }
        let mut values = self.fetch(&kept).await.unwrap_or_else(|e| panic!("reading back: {e}")).into_iter();
        for case in batch {
            let specs = results_of(case);
            let first: Vec<Vec<u32>> = values.by_ref().take(specs.len()).collect();
            for (i, spec) in specs.iter().enumerate() {
                self.report.judge(case, "gpu", i, &first[i]);
                let again = values.next().unwrap_or_default();
                match Guarded::values(&again, spec) {
                    Ok(again) if again == first[i] => {}
                    Ok(_) => self.fail(case, "two runs differ in their bits"),
                    Err(fault) => self.fail(case, &fault),
                }
            }
            self.check_operands(case, values.by_ref().take(case.inputs.len()).collect());
        }
    }

    /// Records two runs of a case and gives copies of the results of the first, of the
    /// second with what lies around them, and of the operands.
    async fn record(&self, case: &Case) -> Vec<Tensor> {
        let specs = results_of(case);
        self.poison(room(case));
        let inputs = self.operands(case);
        let operands: Vec<&Tensor> = inputs.iter().collect();
        let mut kept = Vec::new();
        let first = start(case, &operands, &[], Path::Gpu).await;
        kept.extend(expect(case, first).iter().map(|result| self.keep(result)));
        // This time scratch memory holds what the first run left there.
        let outs: Vec<Guarded> = specs.iter().map(|spec| self.guarded(spec)).collect();
        let given: Vec<_> = outs.iter().map(|out| Some(&out.tensor)).collect();
        expect(case, start(case, &operands, &given, Path::Gpu).await);
        kept.extend(outs.iter().map(|out| self.keep(&out.region)));
        kept.extend(inputs.iter().map(|input| self.keep(input)));
        kept
    }

    async fn check_host(&mut self, batch: &[Case]) {
        self.poison(batch.iter().map(room).sum());
        let mut started: Vec<(Pending, Vec<Tensor>, Vec<Guarded>)> = Vec::new();
        for (i, case) in batch.iter().enumerate() {
            let inputs = self.operands(case);
            // Results in new memory and given ones by turns; a call that rejects hands none out.
            let given = case.fault.is_some() || i % 2 == 1;
            let specs = if given { results_of(case) } else { Vec::new() };
            let outs: Vec<Guarded> = specs.iter().map(|spec| self.guarded(spec)).collect();
            let out: Vec<_> = outs.iter().map(|out| Some(&out.tensor)).collect();
            let pending = start(case, &inputs.iter().collect::<Vec<_>>(), &out, Path::Host);
            started.push((pending, inputs, outs));
        }
        let mut tensors = Vec::new();
        for (case, (pending, inputs, outs)) in batch.iter().zip(started) {
            let outcome = pending.await;
            let results = match &case.fault {
                None => expect(case, outcome),
                Some(fault) => {
                    self.expect_fault(case, "host", fault, outcome.err());
                    Vec::new()
                }
            };
            let regions = outs.into_iter().map(|out| out.region).collect::<Vec<_>>();
            tensors.extend(if regions.is_empty() { results } else { regions });
            tensors.extend(inputs);
        }
        let mut values =
            self.fetch(&tensors).await.unwrap_or_else(|e| panic!("reading back: {e}")).into_iter();
        for (n, case) in batch.iter().enumerate() {
            for (i, spec) in results_of(case).iter().enumerate() {
                let words = values.next().unwrap_or_default();
                if case.fault.is_none() && n % 2 == 0 {
                    self.report.judge(case, "host", i, &words);
                    continue;
                }
                match Guarded::values(&words, spec) {
                    Ok(words) => self.report.judge(case, "host", i, words),
                    Err(fault) => self.fail(case, &fault),
                }
            }
            self.check_operands(case, values.by_ref().take(case.inputs.len()).collect());
        }
    }

    /// Fails if a call changed its operands.
    fn check_operands(&mut self, case: &Case, after: Vec<Vec<u32>>) {
        for (i, words) in after.iter().enumerate() {
            if case.input(i).0.bytes() != bytemuck::cast_slice::<u32, u8>(words) {
                self.fail(case, &format!("{} was changed", case.op.inputs()[i]));
            }
        }
    }

    fn expect_fault(&mut self, case: &Case, path: &str, want: &Error, got: Option<Error>) {
        if got.as_ref() != Some(want) {
            self.fail(case, &format!("({path}) reported {got:?}, want {want:?}"));
        }
    }

    fn fail(&mut self, case: &Case, fault: &str) {
        self.report.fail(format!("{}, case {}: {fault}", case.op.name(), case.name));
    }

    /// The operands of a case in the default arena.
    pub fn operands(&self, case: &Case) -> Vec<Tensor> {
        let mut tensors: Vec<Tensor> = Vec::new();
        for (i, input) in case.inputs.iter().enumerate() {
            let tensor = match input {
                Input::Same(earlier) => tensors[*earlier].clone(),
                Input::New(values, _) => {
                    let spec = case.input(i).1;
                    Tensor::upload_bytes(&self.arena, values.bytes(), spec).expect("an upload")
                }
            };
            tensors.push(tensor);
        }
        tensors
    }

    /// A copy of the words as they will be after everything recorded so far.
    fn keep(&self, tensor: &Tensor) -> Tensor {
        let from = tensor.operand("result").expect("a live tensor").span;
        let shape = Shape::new([(from.bytes / 4) as u32]).expect("a shape");
        let copy = Tensor::new(&self.kept, Spec { shape, dtype: Dtype::U32 }).expect("memory");
        if from.bytes > 0 {
            self.gpu.copy(from, copy.operand("copy").expect("a live tensor").span);
        }
        copy
    }

    /// The words of all of these, in one read.
    pub async fn fetch(&self, tensors: &[Tensor]) -> Result<Vec<Vec<u32>>> {
        self.fetch_spans(tensors.iter().map(|t| t.operand("result").expect("a live tensor").span).collect())
            .await
    }

    pub async fn fetch_spans(&self, spans: Vec<Span>) -> Result<Vec<Vec<u32>>> {
        let sizes: Vec<usize> = spans.iter().map(|span| span.bytes as usize / 4).collect();
        let read = self.gpu.read(spans, move |mapped| {
            let mut values: Vec<Vec<u32>> = sizes.iter().map(|&size| vec![0; size]).collect();
            for (i, words) in values.iter_mut().enumerate() {
                mapped.copy_to(i, bytemuck::cast_slice_mut(words));
            }
            values
        });
        read?.await
    }
}

fn start<'a>(case: &Case, operands: &[&Tensor], out: &[Option<&Tensor>], path: Path) -> Pending<'a> {
    match op::run(case.op.clone(), operands, out, path) {
        Ok(pending) => Box::pin(pending),
        Err(error) => panic!("{}, case {}, {path:?}: {error}", case.op.name(), case.name),
    }
}

fn expect(case: &Case, outcome: Result<Vec<Tensor>>) -> Vec<Tensor> {
    outcome.unwrap_or_else(|error| panic!("{}, case {}: {error}", case.op.name(), case.name))
}

fn results_of(case: &Case) -> Vec<Spec> {
    case.op.infer(&case.specs()).unwrap_or_else(|error| panic!("{}: {error}", case.name))
}

fn bytes(case: &Case) -> u64 {
    let of = |specs: &[Spec]| specs.iter().map(|spec| spec.bytes() + 1024).sum::<u64>();
    of(&case.specs()) + of(&results_of(case))
}

/// More than operands, results and scratch memory of a case take.
fn room(case: &Case) -> u64 {
    8 * bytes(case) + (64 << 10)
}

/// Runs of cases to be read together. A case with a fault is alone: any read reports it.
fn batches(cases: &[Case]) -> Vec<&[Case]> {
    let mut batches = Vec::new();
    let (mut first, mut held) = (0, 0);
    for (i, case) in cases.iter().enumerate() {
        let faulty = case.fault.is_some() || (i > 0 && cases[i - 1].fault.is_some());
        if i > first && (faulty || i - first == BATCH.0 || held + bytes(case) > BATCH.1) {
            batches.push(&cases[first..i]);
            (first, held) = (i, 0);
        }
        held += bytes(case);
    }
    batches.extend((first < cases.len()).then(|| &cases[first..]));
    batches
}
