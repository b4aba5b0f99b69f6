//! Matrices that a warp multiplies: their shapes, their elements, and the lane and register that
//! hold each element.
//!
//! The layouts for `mma` are documented by PTX. For `wmma`, PTX leaves them open; here they are the
//! same, block by block. So a program that only loads, multiplies and stores matrices, and changes
//! all elements alike, gets the same results as on a GPU.

/// The number of rows and of columns, and the depth of the sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Shape(u8);

const SHAPES: [(&str, [u16; 3]); 16] = [
    ("m8n8k4", [8, 8, 4]),
    ("m8n8k16", [8, 8, 16]),
    ("m8n8k32", [8, 8, 32]),
    ("m8n8k128", [8, 8, 128]),
    ("m16n8k4", [16, 8, 4]),
    ("m16n8k8", [16, 8, 8]),
    ("m16n8k16", [16, 8, 16]),
    ("m16n8k32", [16, 8, 32]),
    ("m16n8k64", [16, 8, 64]),
    ("m16n8k128", [16, 8, 128]),
    ("m16n8k256", [16, 8, 256]),
    ("m16n16k16", [16, 16, 16]),
    ("m16n16k8", [16, 16, 8]),
    ("m8n32k16", [8, 32, 16]),
    ("m32n8k16", [32, 8, 16]),
    ("", [0; 3]),
];

impl Shape {
    pub(crate) fn of(name: &str) -> Option<Shape> {
        let found = SHAPES.iter().position(|(known, _)| *known == name && !name.is_empty());
        found.map(|number| Shape(number as u8))
    }

    /// Returns rows, columns and depth.
    pub(crate) fn extents(self) -> [usize; 3] {
        SHAPES[usize::from(self.0) % 16].1.map(usize::from)
    }
}

/// The type of an element.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Element {
    F16,
    Bf16,
    /// The upper 19 bits of an `f32`.
    Tf32,
    F32,
    F64,
    S8,
    U8,
    S4,
    U4,
    B1,
    S32,
}

impl Element {
    pub(crate) fn of(name: &str) -> Option<Element> {
        named!(name, Element {
            "f16" => F16, "bf16" => Bf16, "tf32" => Tf32, "f32" => F32, "f64" => F64, "s8" => S8,
            "u8" => U8, "s4" => S4, "u4" => U4, "b1" => B1, "s32" => S32,
        })
    }

    pub(crate) fn bits(self) -> usize {
        match self {
            Element::B1 => 1,
            Element::S4 | Element::U4 => 4,
            Element::S8 | Element::U8 => 8,
            Element::F16 | Element::Bf16 => 16,
            Element::Tf32 | Element::F32 | Element::S32 => 32,
            Element::F64 => 64,
        }
    }

    pub(crate) fn is_wide(self) -> bool {
        self == Element::F64
    }

    /// Returns the number of elements in a register.
    pub(crate) fn in_register(self) -> usize {
        (32 / self.bits()).max(1)
    }
}

/// A matrix of a product.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Part {
    A,
    B,
    /// The summand, and the result.
    C,
}

/// A matrix as the lanes of a warp hold it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Fragment {
    pub(crate) shape: Shape,
    pub(crate) part: Part,
    pub(crate) element: Element,
    /// True if columns, and not rows, are contiguous in memory.
    pub(crate) columns: bool,
}

impl Fragment {
    /// Returns rows and columns.
    pub(crate) fn extents(self) -> [usize; 2] {
        let [m, n, k] = self.shape.extents();
        match self.part {
            Part::A => [m, k],
            Part::B => [k, n],
            Part::C => [m, n],
        }
    }

    /// Returns the number of registers of a lane that hold all elements once.
    pub(crate) fn registers(self) -> usize {
        let [rows, columns] = self.extents();
        rows * columns / 32 / self.element.in_register()
    }

    /// Returns row and column of element `i` in a register of a lane.
    pub(crate) fn place(self, register: usize, lane: usize, i: usize) -> [usize; 2] {
        let ([m, n, k], each) = (self.shape.extents(), self.element.in_register());
        let register = register % self.registers().max(1);
        let (group, member) = (lane / 4, lane % 4);
        match self.part {
            Part::A => {
                let blocks = m / 8;
                let (block, along) = (register % blocks, register / blocks);
                [8 * block + group, (4 * along + member) * each + i]
            }
            Part::B => {
                let blocks = k / (4 * each);
                let (block, along) = (register / blocks, register % blocks);
                debug_assert!(block < n / 8);
                [(4 * along + member) * each + i, 8 * block + group]
            }
            Part::C => {
                // Two neighbouring elements, in one register or in two.
                let (pair, i) =
                    if each == 2 { (register, i) } else { (register / 2, register % 2) };
                let (block, column) = (pair % (m / 8), pair / (m / 8));
                [8 * block + group, 8 * column + 2 * member + i]
            }
        }
    }

    /// Returns true if the elements of a register are contiguous in memory.
    pub(crate) fn is_contiguous(self) -> bool {
        self.element.in_register() == 1 || self.columns == (self.part == Part::B)
    }

    /// Returns the bytes of the smallest access to memory.
    pub(crate) fn least_bytes(self) -> u32 {
        if self.is_contiguous() { 4 } else { self.element.bits() as u32 / 8 }
    }

    /// Returns the default stride: the number of elements in a row, or in a column.
    pub(crate) fn stride(self) -> usize {
        let [rows, columns] = self.extents();
        if self.columns { rows } else { columns }
    }
}

/// A product of matrices: `d = a b + c`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Product {
    pub(crate) shape: Shape,
    pub(crate) a: Element,
    pub(crate) b: Element,
    pub(crate) c: Element,
    pub(crate) d: Element,
    pub(crate) how: How,
}

/// The arithmetic of a product.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum How {
    /// Numbers; integers wrap.
    Plain,
    /// Integers, clamped to `s32`.
    Saturate,
    /// Bits: counts the bits that differ (`CountXor`) or are both 1 (`CountAnd`).
    CountXor,
    CountAnd,
}

impl Product {
    pub(crate) fn fragment(self, part: Part) -> Fragment {
        let element = match part {
            Part::A => self.a,
            Part::B => self.b,
            Part::C => self.c,
        };
        Fragment { shape: self.shape, part, element, columns: false }
    }

    pub(crate) fn result(self) -> Fragment {
        Fragment { shape: self.shape, part: Part::C, element: self.d, columns: false }
    }
}
