//! Reads the golden files; README.md beside this file has the format. No
//! dependencies, and the same on wasm32: the bytes come from `include_bytes!`.
//! A file that is not what it should be panics with what was wrong and where.
#![allow(dead_code, reason = "no test binary uses every helper")]

/// One case: attributes, inputs and expected outputs of one op.
pub struct Case {
    pub name: String,
    attrs: Vec<(String, f64)>,
    arrays: Vec<Array>,
}

struct Array {
    name: String,
    shape: Vec<usize>,
    data: Data,
}

enum Data {
    F32(Vec<f32>),
    U32(Vec<u32>),
    I32(Vec<i32>),
    F64(Vec<f64>),
}

/// `case.f32("x")`: the values of an array of that dtype, row-major.
macro_rules! values {
    ($dtype:ident, $variant:ident) => {
        pub fn $dtype(&self, name: &str) -> &[$dtype] {
            match &self.array(name).data {
                Data::$variant(values) => values,
                _ => panic!(
                    "golden case {}: {name} is {}, not {}",
                    self.name,
                    self.dtype(name),
                    stringify!($dtype)
                ),
            }
        }
    };
}

impl Case {
    values!(f32, F32);
    values!(u32, U32);
    values!(i32, I32);
    values!(f64, F64);

    pub fn shape(&self, name: &str) -> &[usize] {
        &self.array(name).shape
    }

    /// `"f32"`, `"u32"`, `"i32"` or `"f64"`.
    pub fn dtype(&self, name: &str) -> &'static str {
        match self.array(name).data {
            Data::F32(_) => "f32",
            Data::U32(_) => "u32",
            Data::I32(_) => "i32",
            Data::F64(_) => "f64",
        }
    }

    /// Whether the case has this array (`beta` is optional).
    pub fn has(&self, name: &str) -> bool {
        self.arrays.iter().any(|a| a.name == name)
    }

    /// The value of an attribute.
    pub fn attr(&self, key: &str) -> f64 {
        let found = self.attrs.iter().find(|(k, _)| k == key);
        let Some((_, value)) = found else { panic!("golden case {}: no attribute {key}", self.name) };
        *value
    }

    /// A whole, non-negative attribute (a size or a count).
    pub fn size(&self, key: &str) -> usize {
        let (value, n) = (self.attr(key), self.attr(key) as usize);
        assert!(n as f64 == value, "golden case {}: {key} = {value} is no size", self.name);
        n
    }

    /// An attribute that is 0 or 1.
    pub fn flag(&self, key: &str) -> bool {
        let n = self.size(key);
        assert!(n <= 1, "golden case {}: {key} = {n} is no flag", self.name);
        n == 1
    }

    fn array(&self, name: &str) -> &Array {
        let found = self.arrays.iter().find(|a| a.name == name);
        found.unwrap_or_else(|| panic!("golden case {}: no array {name}", self.name))
    }
}

/// All cases of a golden file, in its order.
pub fn parse(bytes: &[u8]) -> Vec<Case> {
    let mut r = Reader { bytes, at: 0 };
    assert_eq!(r.take(8, "magic"), b"WGRADGLD", "golden file: wrong magic");
    assert_eq!(r.u32("version"), 1, "golden file: unknown version");
    let cases = r.many("case count", Reader::case);
    let left = bytes.len() - r.at;
    assert_eq!(left, 0, "golden file: bytes after the last case");
    cases
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn take(&mut self, n: usize, what: &str) -> &'a [u8] {
        let (at, left) = (self.at, self.bytes.len() - self.at);
        assert!(n <= left, "golden file: truncated at byte {at}: {what} wants {n}, {left} left");
        self.at += n;
        &self.bytes[at..at + n]
    }

    fn word<const N: usize>(&mut self, what: &str) -> [u8; N] {
        let mut word = [0; N];
        word.copy_from_slice(self.take(N, what));
        word
    }

    fn u32(&mut self, what: &str) -> u32 {
        u32::from_le_bytes(self.word(what))
    }

    fn text(&mut self, what: &str) -> String {
        let length = self.u32(what) as usize;
        let bytes = self.take(length, what).to_vec();
        String::from_utf8(bytes).unwrap_or_else(|e| panic!("golden file: {what}: {e}"))
    }

    /// A count, then that many items. Nothing is reserved ahead, so a wild
    /// count ends as a truncation and not as a failed allocation.
    fn many<T>(&mut self, what: &str, mut item: impl FnMut(&mut Self) -> T) -> Vec<T> {
        let mut items = Vec::new();
        for _ in 0..self.u32(what) {
            items.push(item(self));
        }
        items
    }

    /// Values of N bytes each, to the product of the shape.
    fn values<const N: usize, T>(&mut self, shape: &[usize], of: fn([u8; N]) -> T) -> Vec<T> {
        let bytes = shape.iter().try_fold(N, |n, &dim| n.checked_mul(dim));
        let bytes = bytes.unwrap_or_else(|| panic!("golden file: shape {shape:?} is too large"));
        let data = self.take(bytes, "data");
        let word = |chunk: &[u8]| of(chunk.try_into().expect("chunks are of N bytes"));
        data.chunks_exact(N).map(word).collect()
    }

    fn case(&mut self) -> Case {
        Case {
            name: self.text("case name"),
            attrs: self.many("attribute count", |r| {
                (r.text("attribute name"), f64::from_le_bytes(r.word("attribute")))
            }),
            arrays: self.many("array count", Reader::array),
        }
    }

    fn array(&mut self) -> Array {
        let name = self.text("array name");
        let dtype = self.u32("dtype");
        let shape = self.many("rank", |r| r.u32("dimension") as usize);
        let data = match dtype {
            0 => Data::F32(self.values(&shape, f32::from_le_bytes)),
            1 => Data::U32(self.values(&shape, u32::from_le_bytes)),
            2 => Data::I32(self.values(&shape, i32::from_le_bytes)),
            3 => Data::F64(self.values(&shape, f64::from_le_bytes)),
            other => panic!("golden file: {name} has unknown dtype {other}"),
        };
        Array { name, shape, data }
    }
}

#[cfg(test)]
mod tests {
    use super::parse;

    /// A file with one case of one attribute and three arrays, made by hand.
    fn file() -> Vec<u8> {
        let mut b = b"WGRADGLD\x01\0\0\0\x01\0\0\0".to_vec();
        b.extend(b"\x03\0\0\0two\x01\0\0\0\x01\0\0\0n");
        b.extend(2f64.to_le_bytes());
        b.extend(b"\x03\0\0\0");
        b.extend(b"\x01\0\0\0x\0\0\0\0\x02\0\0\0\x01\0\0\0\x02\0\0\0");
        b.extend([1.5f32, -2.0].iter().flat_map(|v| v.to_le_bytes()));
        b.extend(b"\x01\0\0\0i\x02\0\0\0\x01\0\0\0\x01\0\0\0\xff\xff\xff\xff");
        b.extend(b"\x01\0\0\0e\x01\0\0\0\x02\0\0\0\x03\0\0\0\0\0\0\0");
        b
    }

    #[test]
    fn reads_a_file_made_by_hand() {
        let cases = parse(&file());
        assert_eq!(cases.len(), 1);
        let case = &cases[0];
        assert_eq!((case.name.as_str(), case.attr("n"), case.size("n")), ("two", 2.0, 2));
        assert_eq!((case.shape("x"), case.f32("x")), (&[1, 2][..], &[1.5, -2.0][..]));
        assert_eq!((case.shape("i"), case.i32("i"), case.dtype("i")), (&[1][..], &[-1][..], "i32"));
        assert_eq!((case.shape("e"), case.u32("e")), (&[3, 0][..], &[][..]));
        assert!(case.has("x") && !case.has("y"));
    }

    #[test]
    fn every_truncation_is_named() {
        let file = file();
        for n in 0..file.len() {
            let panic = std::panic::catch_unwind(|| parse(&file[..n]).len()).unwrap_err();
            let message = panic.downcast_ref::<String>().expect("a message");
            assert!(message.contains("truncated at byte"), "{n} bytes: {message}");
        }
    }

    #[test]
    #[should_panic(expected = "golden file: wrong magic")]
    fn wrong_magic() {
        let mut file = file();
        file[7] = b'X';
        parse(&file);
    }

    #[test]
    #[should_panic(expected = "golden file: unknown version")]
    fn wrong_version() {
        let mut file = file();
        file[8] = 2;
        parse(&file);
    }

    #[test]
    #[should_panic(expected = "golden file: bytes after the last case")]
    fn bytes_left_over() {
        let mut file = file();
        file.push(0);
        parse(&file);
    }

    #[test]
    #[should_panic(expected = "golden case two: i is i32, not u32")]
    fn wrong_dtype() {
        parse(&file())[0].u32("i");
    }

    #[test]
    #[should_panic(expected = "golden case two: no array y")]
    fn missing_array() {
        parse(&file())[0].f32("y");
    }
}
