//! RMSNorm as JavaScript calls it.

use super::{GRADIENTS, RmsNorm, RmsNormBackward};
use crate::error::{Code, Error, Result};
use crate::js::{self, Call, JsArena, Options, tensor};
use crate::shape::Dtype;
use js_sys::Promise;
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

#[wasm_bindgen(typescript_custom_section)]
const TYPES: &str = r#"
export interface RmsNormOptions extends OutOptions {
  /** [h], added after the scale. Default: none. */
  beta?: Tensor;
  /** Added to the mean square, 0 or more. Default 1e-5. */
  eps?: number;
}

export interface RmsNormGradientOptions extends OutOptions {
  /** As in the forward. Default 1e-5. */
  eps?: number;
}

/** A gradient of rmsNorm. */
export type RmsNormGradient = "dx" | "dgamma" | "dbeta";

export interface RmsNormBackwardOptions<W extends RmsNormGradient = RmsNormGradient> extends OpOptions {
  /** As in the forward. Default 1e-5. */
  eps?: number;
  /** Which gradients to compute. Default all three. */
  wants?: readonly W[];
  /** Tensors that receive results, of the right shape, overlapping no operand. Default: new ones. */
  out?: { readonly [G in W]?: Tensor };
}

/** Operands as byte offsets into the arena, multiples of 256. x, dy: [rows, h]; gamma: [h]. `beta` is accepted and not read. */
export interface RunRmsNormBackward {
  x: number;
  gamma: number;
  beta?: number;
  dy: number;
  rows: number;
  h: number;
  /** Default 1e-5. */
  eps?: number;
}
"#;

fn eps(options: &Options) -> Result<f32> {
    Ok(options.number("eps", 1e-5)? as f32)
}

/// RMSNorm: `y = x·r·gamma + beta` with `r = 1/sqrt(mean(x²) + eps)` per row.
///
/// x: [.., h]; gamma, beta: [h]; result: like x. Squares must not overflow: |x| up to 1e18.
/// Settles when queued. Rejects with `shape`, `dtype`, `argument`, `alias`, `disposed`,
/// `limit`, `out-of-memory` or `device-lost` before anything is queued.
/// Source: Zhang & Sennrich 2019.
#[wasm_bindgen(js_name = rmsNorm, unchecked_return_type = "Promise<Tensor>")]
pub fn rms_norm(
    #[wasm_bindgen(unchecked_param_type = "Tensor")] x: &JsValue,
    #[wasm_bindgen(unchecked_param_type = "Tensor")] gamma: &JsValue,
    #[wasm_bindgen(unchecked_optional_param_type = "RmsNormOptions")] options: &JsValue,
) -> Promise {
    js::one("rmsNorm", || {
        let options = Options::read(options, &["beta", "eps", "out", "path"])?;
        let mut inputs = vec![tensor("x", x)?, tensor("gamma", gamma)?];
        let beta = options.tensor("beta")?;
        let op = RmsNorm { eps: eps(&options)?, beta: beta.is_some() };
        inputs.extend(beta);
        Call::new(op, inputs, &options)
    })
}

/// All gradients of rmsNorm, fused: `dx = r·(gamma·dy − x·r²·mean(gamma·dy·x))`,
/// `dgamma = Σ_rows dy·x·r`, `dbeta = Σ_rows dy`. Needs nothing of the forward.
///
/// x, dy: [.., h]; gamma: [h]. A row of zeros is legal. Settles and rejects as `rmsNorm`.
#[wasm_bindgen(js_name = rmsNormBackward, skip_typescript)]
pub fn rms_norm_backward(x: &JsValue, gamma: &JsValue, dy: &JsValue, options: &JsValue) -> Promise {
    js::several("rmsNormBackward", || {
        let options = Options::read(options, &["eps", "wants", "out", "path"])?;
        let inputs = vec![tensor("x", x)?, tensor("gamma", gamma)?, tensor("dy", dy)?];
        let op = RmsNormBackward { name: "rmsNormBackward", eps: eps(&options)?, wants: wants(&options)? };
        Call::with_outs(op, inputs, &options)
    })
}

// wasm-bindgen has no way to say that the result has just the wanted keys.
#[wasm_bindgen(typescript_custom_section)]
const BACKWARD: &str = r#"
/**
 * All gradients of rmsNorm, fused: `dx = r·(gamma·dy − x·r²·mean(gamma·dy·x))`,
 * `dgamma = Σ_rows dy·x·r`, `dbeta = Σ_rows dy`. Needs nothing of the forward.
 *
 * x, dy: [.., h]; gamma: [h]. A row of zeros is legal. The result has the gradients that
 * `wants` names. Settles and rejects as `rmsNorm`.
 */
export function rmsNormBackward<W extends RmsNormGradient = RmsNormGradient>(x: Tensor, gamma: Tensor, dy: Tensor, options?: RmsNormBackwardOptions<W>): Promise<Record<W, Tensor>>;
"#;

fn wants(options: &Options) -> Result<[bool; 3]> {
    let Some(value) = options.get("wants")? else { return Ok([true; 3]) };
    let fault = "must be an array of some of \"dx\", \"dgamma\", \"dbeta\"";
    let fault = || Error::operand(Code::Argument, "wants", fault);
    let mut wants = [false; 3];
    for name in js::elements("wants", &value)?.ok_or_else(fault)? {
        let name = name.as_string();
        let i = GRADIENTS.iter().position(|gradient| name.as_deref() == Some(gradient)).ok_or_else(fault)?;
        wants[i] = true;
    }
    if wants == [false; 3] { Err(fault()) } else { Ok(wants) }
}

fn single(
    index: usize,
    name: &'static str,
    x: &JsValue,
    gamma: &JsValue,
    dy: &JsValue,
    options: &JsValue,
) -> Promise {
    js::one(name, || {
        let options = Options::read(options, &["eps", "out", "path"])?;
        let inputs = vec![tensor("x", x)?, tensor("gamma", gamma)?, tensor("dy", dy)?];
        let op = RmsNormBackward { name, eps: eps(&options)?, wants: std::array::from_fn(|i| i == index) };
        Call::new(op, inputs, &options)
    })
}

/// `dx` of rmsNorm alone: like x. Settles and rejects as `rmsNorm`.
#[wasm_bindgen(js_name = rmsNormBackwardInput, unchecked_return_type = "Promise<Tensor>")]
pub fn rms_norm_backward_input(
    #[wasm_bindgen(unchecked_param_type = "Tensor")] x: &JsValue,
    #[wasm_bindgen(unchecked_param_type = "Tensor")] gamma: &JsValue,
    #[wasm_bindgen(unchecked_param_type = "Tensor")] dy: &JsValue,
    #[wasm_bindgen(unchecked_optional_param_type = "RmsNormGradientOptions")] options: &JsValue,
) -> Promise {
    single(0, "rmsNormBackwardInput", x, gamma, dy, options)
}

/// `dgamma` of rmsNorm alone: [h]. Settles and rejects as `rmsNorm`.
#[wasm_bindgen(js_name = rmsNormBackwardGamma, unchecked_return_type = "Promise<Tensor>")]
pub fn rms_norm_backward_gamma(
    #[wasm_bindgen(unchecked_param_type = "Tensor")] x: &JsValue,
    #[wasm_bindgen(unchecked_param_type = "Tensor")] gamma: &JsValue,
    #[wasm_bindgen(unchecked_param_type = "Tensor")] dy: &JsValue,
    #[wasm_bindgen(unchecked_optional_param_type = "RmsNormGradientOptions")] options: &JsValue,
) -> Promise {
    single(1, "rmsNormBackwardGamma", x, gamma, dy, options)
}

/// `dbeta` of rmsNorm alone: [h]. Settles and rejects as `rmsNorm`.
#[wasm_bindgen(js_name = rmsNormBackwardBeta, unchecked_return_type = "Promise<Tensor>")]
pub fn rms_norm_backward_beta(
    #[wasm_bindgen(unchecked_param_type = "Tensor")] x: &JsValue,
    #[wasm_bindgen(unchecked_param_type = "Tensor")] gamma: &JsValue,
    #[wasm_bindgen(unchecked_param_type = "Tensor")] dy: &JsValue,
    #[wasm_bindgen(unchecked_optional_param_type = "RmsNormGradientOptions")] options: &JsValue,
) -> Promise {
    single(2, "rmsNormBackwardBeta", x, gamma, dy, options)
}

fn run(arena: &JsArena, index: usize, name: &'static str, operands: &JsValue) -> Promise {
    js::none(name, || {
        let known = ["x", "gamma", "beta", "dy", GRADIENTS[index], "rows", "h", "eps", "path"];
        let options = Options::read(operands, &known)?;
        let (rows, h) = (options.count("rows")?, options.count("h")?);
        let at = |name, dims: &[u32]| arena.operand_at(&options, name, dims, Dtype::F32);
        let inputs = vec![at("x", &[rows, h])?, at("gamma", &[h])?, at("dy", &[rows, h])?];
        let dims = [rows, h];
        let out = at(GRADIENTS[index], if index == 0 { &dims } else { &dims[1..] })?;
        let op = RmsNormBackward { name, eps: eps(&options)?, wants: std::array::from_fn(|i| i == index) };
        Ok(Call::new(op, inputs, &options)?.writing_to(GRADIENTS[index], out))
    })
}

#[wasm_bindgen(js_class = Arena)]
impl JsArena {
    /// `rmsNormBackwardInput` on byte offsets; writes dx [rows, h]. Settles and rejects as `rmsNorm`.
    #[wasm_bindgen(js_name = runRmsNormBackwardInput, unchecked_return_type = "Promise<void>")]
    pub fn run_rms_norm_backward_input(
        &self,
        #[wasm_bindgen(unchecked_param_type = "RunRmsNormBackward & OpOptions & { dx: number }")]
        operands: &JsValue,
    ) -> Promise {
        run(self, 0, "runRmsNormBackwardInput", operands)
    }

    /// `rmsNormBackwardGamma` on byte offsets; writes dgamma [h]. Settles and rejects as `rmsNorm`.
    #[wasm_bindgen(js_name = runRmsNormBackwardGamma, unchecked_return_type = "Promise<void>")]
    pub fn run_rms_norm_backward_gamma(
        &self,
        #[wasm_bindgen(unchecked_param_type = "RunRmsNormBackward & OpOptions & { dgamma: number }")]
        operands: &JsValue,
    ) -> Promise {
        run(self, 1, "runRmsNormBackwardGamma", operands)
    }

    /// `rmsNormBackwardBeta` on byte offsets; writes dbeta [h]. Settles and rejects as `rmsNorm`.
    #[wasm_bindgen(js_name = runRmsNormBackwardBeta, unchecked_return_type = "Promise<void>")]
    pub fn run_rms_norm_backward_beta(
        &self,
        #[wasm_bindgen(unchecked_param_type = "RunRmsNormBackward & OpOptions & { dbeta: number }")] operands: &JsValue,
    ) -> Promise {
        run(self, 2, "runRmsNormBackwardBeta", operands)
    }
}
