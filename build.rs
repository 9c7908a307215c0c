//! Turns every `shaders/*.wgsl` into Rust: its source, its `Params` structs and
//! one struct per entry point whose fields are the operands it binds.
//!
//! naga parses and validates here, so a shader that Firefox would refuse fails
//! the build, and neither a binding nor a uniform's layout is written twice.

use naga::valid::{Capabilities, ModuleInfo, ValidationFlags, Validator};
use naga::{AddressSpace, Module, ScalarKind, TypeInner};
use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs};

fn main() {
    println!("cargo:rerun-if-changed=shaders");
    let mut files: Vec<_> = fs::read_dir("shaders")
        .expect("shaders/ exists")
        .map(|entry| entry.expect("readable entry").path())
        .filter(|path| path.extension().is_some_and(|ext| ext == "wgsl"))
        .collect();
    files.sort();
    let rust: String = files.iter().map(|path| generate(path)).collect();
    let out = env::var("OUT_DIR").expect("cargo sets OUT_DIR");
    fs::write(Path::new(&out).join("kernels.rs"), rust).expect("OUT_DIR is writable");
}

/// Replaces each `#import name` by `shaders/shared/name.wgsl`, once, and drops
/// comments and indentation. Line breaks stay, so that a compiler's line number
/// points at the right line of the embedded text.
fn expand(source: &str, seen: &mut Vec<String>) -> String {
    let mut out = String::new();
    for line in source.lines() {
        let code = line.split("//").next().unwrap_or("").trim();
        match code.strip_prefix("#import ") {
            Some(name) if seen.iter().any(|s| s == name) => {}
            Some(name) => {
                seen.push(name.to_string());
                let path = format!("shaders/shared/{name}.wgsl");
                let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
                out += &expand(&text, seen);
            }
            None if code.is_empty() => {}
            None => {
                out += code;
                out.push('\n');
            }
        }
    }
    out
}

fn generate(path: &Path) -> String {
    let name = path.file_stem().and_then(|s| s.to_str()).expect("utf-8 file name");
    let text = fs::read_to_string(path).expect("readable shader");
    let source = expand(&text, &mut Vec::new());
    let module = naga::front::wgsl::parse_str(&source)
        .unwrap_or_else(|e| panic!("{}", e.emit_to_string_with_path(&source, &path.to_string_lossy())));
    let info = Validator::new(ValidationFlags::all(), Capabilities::empty())
        .validate(&module)
        .unwrap_or_else(|e| panic!("{}", e.emit_to_string_with_path(&source, &path.to_string_lossy())));

    let mut out = String::new();
    let _ = writeln!(out, "/// Kernels of `shaders/{name}.wgsl`.\npub mod {name} {{");
    let _ = writeln!(out, "use crate::gpu::kernel::{{Bind, Kernel}};\nuse crate::gpu::Span;");
    let _ = writeln!(out, "/// The shader's text, imports expanded.\npub static SOURCE: &str = {source:?};");
    out += &params(&module);
    for index in 0..module.entry_points.len() {
        out += &entry(name, &module, &info, index);
    }
    out += "}\n";
    out
}

/// A `#[repr(C)]` twin of every uniform struct, padded to WGSL's size.
fn params(module: &Module) -> String {
    let mut out = String::new();
    for (_, global) in module.global_variables.iter() {
        if global.space != AddressSpace::Uniform {
            continue;
        }
        let ty = &module.types[global.ty];
        let TypeInner::Struct { members, span } = &ty.inner else {
            panic!("a uniform must be a struct");
        };
        let name = ty.name.as_deref().expect("a uniform struct has a name");
        let _ = writeln!(
            out,
            "/// The uniform the kernels read.\n#[repr(C)]\n#[derive(Clone, Copy, Debug, Default, bytemuck::Pod, bytemuck::Zeroable)]\npub struct {name} {{"
        );
        for (i, member) in members.iter().enumerate() {
            assert_eq!(member.offset as usize, i * 4, "uniform members must be 4-byte scalars");
            let TypeInner::Scalar(scalar) = module.types[member.ty].inner else {
                panic!("uniform members must be scalars");
            };
            let rust = match scalar.kind {
                ScalarKind::Uint => "u32",
                ScalarKind::Sint => "i32",
                ScalarKind::Float => "f32",
                other => panic!("no uniform member of kind {other:?}"),
            };
            let _ = writeln!(
                out,
                "#[allow(missing_docs)] // described in the WGSL\npub {}: {rust},",
                member.name.as_deref().expect("a member has a name")
            );
        }
        let padding = (*span as usize).div_ceil(16) * 4 - members.len();
        if padding > 0 {
            let _ = writeln!(
                out,
                "#[allow(missing_docs)] // up to a multiple of 16 bytes\npub _pad: [u32; {padding}],"
            );
        }
        out += "}\n";
    }
    out
}

/// `pub struct Forward { pub x: Span, … }`: the operands that the entry point
/// `forward` uses, in binding order.
fn entry(file: &str, module: &Module, info: &ModuleInfo, index: usize) -> String {
    let function = &module.entry_points[index].name;
    let uses = info.get_entry_point(index);
    let mut operands: Vec<(u32, &str)> = module
        .global_variables
        .iter()
        .filter(|(handle, _)| !uses[*handle].is_empty())
        .filter_map(|(_, global)| {
            let binding = global.binding.as_ref()?;
            assert_eq!(binding.group, 0, "{file}: all bindings are in group 0");
            match global.space {
                AddressSpace::Uniform => {
                    assert_eq!(binding.binding, 0, "{file}: Params is binding 0");
                    None
                }
                AddressSpace::Storage { access } => {
                    // Ranges of one buffer may only be bound together if all are read_write.
                    assert!(
                        access.contains(naga::StorageAccess::STORE),
                        "{file}: {:?} must be read_write",
                        global.name
                    );
                    Some((binding.binding, global.name.as_deref().expect("a binding has a name")))
                }
                _ => None,
            }
        })
        .collect();
    operands.sort();
    assert!(operands.len() <= 8, "{file}.{function}: more than 8 storage buffers");

    let camel: String = function.split('_').map(|w| w[..1].to_uppercase() + &w[1..]).collect();
    let field = |name: &str| format!("pub {name}: Span,\n");
    let fields: String = operands.iter().map(|(_, name)| field(name)).collect();
    let spans: String = operands.iter().map(|(_, name)| format!("self.{name}, ")).collect();
    let bindings: Vec<u32> = operands.iter().map(|(n, _)| *n).collect();
    format!(
        "/// Operands of `{file}.{function}`.\n#[allow(missing_docs)] // described in the WGSL\npub struct {camel} {{\n{fields}}}\n\
         impl Bind for {camel} {{\n\
         const KERNEL: &'static Kernel = &Kernel {{ name: \"{file}.{function}\", entry: \"{function}\", source: SOURCE, bindings: &{bindings:?} }};\n\
         fn spans(self) -> Vec<Span> {{ vec![{spans}] }}\n}}\n"
    )
}
