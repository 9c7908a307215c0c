//! `Gpu`.

use super::{
    JsArena, JsTensor, Options, Pending, arena, args, no_constructor, or_throw, promise, raw, set,
    tensor as js_tensor,
};
use crate::error::{Code, Error, Result};
use crate::gpu::{self, Arena, Gpu};
use crate::op::Path;
use crate::self_test;
use js_sys::{Array, Object, Promise, Reflect};
use std::cell::OnceCell;
use std::rc::Rc;
use wasm_bindgen::prelude::wasm_bindgen;
use wasm_bindgen::{JsCast, JsValue};

type Thrown<T> = std::result::Result<T, JsValue>;

#[wasm_bindgen(typescript_custom_section)]
const TYPES: &str = r#"
export interface GpuOptions {
  /** Which GPU, where there are two. Default: the browser decides. */
  powerPreference?: "low-power" | "high-performance";
  /** Ask for all the adapter has (default), or only for what every WebGPU device has. */
  limits?: "adapter" | "default";
}

/** What the adapter and device say of themselves; empty strings where the browser does not tell. */
export interface GpuInfo {
  vendor: string;
  architecture: string;
  device: string;
  description: string;
  /** Features of the device, such as "timestamp-query". */
  features: string[];
  /** Limits of the device by their WebGPU names. */
  limits: Record<string, number>;
  /** Whether this is a software adapter. */
  fallback: boolean;
}

/** Why a device went away: "destroyed" by a call, or "unknown". */
export interface LostInfo {
  reason: "destroyed" | "unknown";
  message: string;
}

export interface SelfTestResult {
  op: string;
  path: Path;
  passed: boolean;
  /** The largest |got - want| / (1e-6 + 1e-5 |want|); NaN if it failed with an error. */
  error: number;
  /** The error, if there was one. */
  message?: string;
}

export interface SelfTestReport {
  passed: boolean;
  results: SelfTestResult[];
}

export interface ArenaOptions {
  /** Add buffers when full (default), or throw `out-of-memory`. */
  grow?: boolean;
}
"#;

/// A GPU device: makes tensors and arenas. Everything made with it works only with it.
#[wasm_bindgen(js_name = Gpu)]
pub struct JsGpu(
    Rc<Gpu>,
    // One promise, however often it is asked for: each would wait for as long as the device lives.
    OnceCell<Promise>,
);

impl Drop for JsGpu {
    /// Without this, a Gpu that was forgotten rather than destroyed would keep itself.
    fn drop(&mut self) {
        self.0.release();
    }
}

/// Why there can be no device here, if so.
fn unsupported() -> Option<&'static str> {
    let global = js_sys::global();
    let get = |object: &JsValue, name: &str| Reflect::get(object, &name.into()).unwrap_or(JsValue::UNDEFINED);
    if get(&global, "isSecureContext") == JsValue::FALSE {
        return Some("WebGPU needs a secure context: serve the page over https or from localhost");
    }
    let navigator = get(&global, "navigator");
    // Something else of that name would make wgpu throw where no promise catches it.
    if !get(&get(&navigator, "gpu"), "requestAdapter").is_function() {
        return Some("this browser or runtime has no WebGPU (navigator.gpu is missing)");
    }
    // wgpu looks for these by name, and nowhere else.
    if get(&global, "Window").is_undefined() && get(&global, "WorkerGlobalScope").is_undefined() {
        return Some("WebGPU is only used in a window or a worker of a browser");
    }
    None
}

fn create_options(options: &JsValue) -> Result<gpu::Options> {
    let options = Options::read(options, &["powerPreference", "limits"])?;
    let preferences =
        [gpu::PowerPreference::None, gpu::PowerPreference::LowPower, gpu::PowerPreference::HighPerformance];
    let limits = [gpu::Limits::Adapter, gpu::Limits::Default];
    Ok(gpu::Options {
        power_preference: preferences
            [options.choice("powerPreference", &["", "low-power", "high-performance"])?],
        limits: limits[options.choice("limits", &["adapter", "default"])?],
    })
}

#[wasm_bindgen(js_class = Gpu)]
impl JsGpu {
    /// Throws: without this, `new` would make an object of nothing.
    #[wasm_bindgen(constructor, skip_typescript)]
    pub fn refuse_new() -> Thrown<JsGpu> {
        no_constructor("Gpu")
    }

    /// Asks the browser for a device.
    ///
    /// Rejects with `unsupported` if there is no WebGPU, no adapter or no secure
    /// context; the message says which. The module stays usable.
    #[wasm_bindgen(unchecked_return_type = "Promise<Gpu>")]
    pub fn create(
        #[wasm_bindgen(unchecked_optional_param_type = "GpuOptions")] options: &JsValue,
    ) -> Promise {
        let start = || -> Result<Pending> {
            let options = create_options(options)?;
            if let Some(reason) = unsupported() {
                return Err(Error::new(Code::Unsupported, reason));
            }
            Ok(Box::pin(async move { Ok(JsGpu(Gpu::create(options).await?, OnceCell::new()).into()) }))
        };
        promise("Gpu.create", start())
    }

    /// The adapter's and device's description.
    #[wasm_bindgen(getter, unchecked_return_type = "GpuInfo")]
    pub fn info(&self) -> Object {
        let device = raw::device(&self.0);
        let get =
            |object: &JsValue, name: &str| Reflect::get(object, &name.into()).unwrap_or(JsValue::UNDEFINED);
        let adapter = get(&device, "adapterInfo");
        let object = Object::new();
        for name in ["vendor", "architecture", "device", "description"] {
            let text = if adapter.is_object() { get(&adapter, name).as_string() } else { None };
            set(&object, name, &text.unwrap_or_default().into());
        }
        set(&object, "features", &Array::from(&get(&device, "features")));
        let (limits, numbers) = (get(&device, "limits"), Object::new());
        // The limits are getters of the prototype, which Object.entries does not list.
        for key in Object::keys(&Object::get_prototype_of(&limits)).iter().filter_map(|key| key.as_string()) {
            let value = get(&limits, &key);
            if value.as_f64().is_some() {
                set(&numbers, &key, &value);
            }
        }
        set(&object, "limits", &numbers);
        let fallback = adapter.is_object() && get(&adapter, "isFallbackAdapter").is_truthy();
        set(&object, "fallback", &fallback.into());
        object
    }

    /// The `GPUDevice` underneath, for other libraries.
    #[wasm_bindgen(getter, unchecked_return_type = "GPUDevice")]
    pub fn device(&self) -> JsValue {
        raw::device(&self.0)
    }

    /// Settles when the device is lost or destroyed. Everything pending then rejects
    /// with `device-lost`, and a new `Gpu.create()` works.
    #[wasm_bindgen(getter, unchecked_return_type = "Promise<LostInfo>")]
    pub fn lost(&self) -> Promise {
        self.1.get_or_init(|| lost(&self.0)).clone()
    }

    /// Bytes over all arenas of this Gpu.
    #[wasm_bindgen(unchecked_return_type = "Memory")]
    pub fn memory(&self) -> Object {
        arena::memory(self.0.memory())
    }

    /// Settles when all work queued so far is done. Rejects as `Tensor.read` does.
    #[wasm_bindgen(unchecked_return_type = "Promise<void>")]
    pub fn sync(&self) -> Promise {
        let start = || -> Result<Pending> {
            let done = self.0.sync()?;
            Ok(Box::pin(async move { done.await.map(|()| JsValue::UNDEFINED) }))
        };
        promise("sync", start())
    }

    /// An arena of `bytes`, allocated when first used. Throws `argument`, `limit` (more
    /// than maxBufferSize), `disposed` or `device-lost`.
    pub fn arena(
        &self,
        #[wasm_bindgen(unchecked_param_type = "number")] bytes: &JsValue,
        #[wasm_bindgen(unchecked_optional_param_type = "ArenaOptions")] options: &JsValue,
    ) -> Thrown<JsArena> {
        let make = || {
            let bytes = args::integer("bytes", bytes, 1, 1 << 53)?;
            let options = Options::read(options, &["grow"])?;
            let grow = options.get("grow")?.is_none() || options.flag("grow")?;
            Arena::new(&self.0, bytes as u64, grow)
        };
        or_throw("arena", make()).map(JsArena::new)
    }

    /// `upload` into an arena of this Gpu's own.
    pub fn tensor(
        &self,
        #[wasm_bindgen(unchecked_param_type = "TensorData")] data: &JsValue,
        #[wasm_bindgen(unchecked_param_type = "readonly number[]")] shape: &JsValue,
    ) -> Thrown<JsTensor> {
        or_throw("tensor", self.0.default_arena().and_then(|arena| js_tensor::upload(&arena, data, shape)))
    }

    /// Runs every op on known answers, on the GPU and on the host path.
    ///
    /// Settles when all have run; a wrong answer is a result, not a rejection.
    #[wasm_bindgen(js_name = selfTest, unchecked_return_type = "Promise<SelfTestReport>")]
    pub fn self_test(&self) -> Promise {
        let gpu = self.0.clone();
        let pending: Pending = Box::pin(async move { Ok(report(&self_test::run(&gpu).await?).into()) });
        promise("selfTest", Ok(pending))
    }

    /// Destroys the device and all memory on it. Harmless when repeated.
    pub fn destroy(&self) {
        self.0.destroy();
    }

    /// The same as `destroy`, for `using`.
    #[wasm_bindgen(skip_typescript)] // wasm-bindgen declares it with [Symbol.dispose]
    pub fn free(&self) {
        self.0.destroy();
    }
}

fn lost(gpu: &Gpu) -> Promise {
    let lost = gpu.lost();
    let pending: Pending = Box::pin(async move {
        let lost = lost.await;
        let object = Object::new();
        set(&object, "reason", &lost.reason.into());
        set(&object, "message", &lost.message.into());
        Ok(object.into())
    });
    promise("lost", Ok(pending))
}

fn report(outcomes: &[self_test::Outcome]) -> Object {
    let results = Array::new();
    for outcome in outcomes {
        let object = Object::new();
        set(&object, "op", &outcome.op.into());
        set(&object, "path", &(if outcome.path == Path::Gpu { "gpu" } else { "host" }).into());
        set(&object, "passed", &outcome.passed().into());
        set(&object, "error", &outcome.error.as_ref().map_or(f64::NAN, |&error| error).into());
        if let Err(error) = &outcome.error {
            set(&object, "message", &error.to_string().into());
        }
        results.push(object.unchecked_ref());
    }
    let report = Object::new();
    set(&report, "passed", &outcomes.iter().all(self_test::Outcome::passed).into());
    set(&report, "results", &results);
    report
}
