//! The operations and bytes of the gallery's models.
//!
//! The counts are for each channel and position, in `f32`: a number has 4 bytes. An addition, a
//! product and a special function (`exp`, a square root, a division) count as one operation each.

/// The work of a model for each channel at each position.
#[derive(Debug, Clone, Copy)]
pub struct Cost {
    /// The name of the model, with the assumed sizes.
    pub model: &'static str,
    /// The number of states of one channel.
    pub states: f64,
    /// True if the states are complex.
    pub complex: bool,
    /// The number of values read from memory: the signal, and the sources of the gates.
    pub sources: f64,
    /// True if every position has its own coefficients.
    pub varying: bool,
    /// The number of operations that make a state's input and coefficient.
    pub making: f64,
    /// The number of operations that read a state, unless the output is the state itself.
    pub reading: Option<f64>,
}

/// The number of floating-point operations that an H200 can do in the time of one byte: 67 · 10^12
/// `f32` operations a second over 4.8 · 10^12 bytes a second, both from its data sheet.
pub const H200_BALANCE: f64 = 67.0 / 4.8;

/// The number of bytes of a value.
const NUMBER: f64 = 4.0;

// ANCHOR: cost
impl Cost {
    /// Returns the number of values in a state.
    fn parts(&self) -> f64 {
        if self.complex { 2.0 } else { 1.0 }
    }

    /// Returns the operations of `y c + x` for one state: 2, and 8 for complex numbers.
    fn stepping(&self) -> f64 {
        if self.complex { 8.0 } else { 2.0 }
    }

    /// Returns the bytes of the recurrence alone: inputs and coefficients in, states out.
    pub fn recurrence_bytes(&self) -> f64 {
        3.0 * NUMBER * self.parts() * self.states
    }

    /// Returns the operations of the recurrence alone.
    pub fn recurrence_operations(&self) -> f64 {
        self.stepping() * self.states
    }

    /// Returns the bytes of three separate passes: make, recur, read.
    pub fn unfused_bytes(&self) -> f64 {
        let expanded = NUMBER * self.parts() * self.states;
        let made = NUMBER * self.sources + if self.varying { 2.0 * expanded } else { expanded };
        let read = if self.reading.is_some() { expanded + NUMBER } else { 0.0 };
        made + self.recurrence_bytes() + read
    }

    /// Returns the bytes of one pass: the sources in, the output out; states stay in registers.
    pub fn fused_bytes(&self) -> f64 {
        NUMBER * (self.sources + 1.0)
    }

    /// Returns the operations for one state: make, step, read.
    pub fn operations_per_state(&self) -> f64 {
        self.making + self.stepping() + self.reading.unwrap_or(0.0)
    }

    /// Returns all operations, fused or not.
    pub fn operations(&self) -> f64 {
        self.operations_per_state() * self.states
    }

    /// Returns the number of states of a fused channel at which arithmetic takes as long as memory.
    pub fn free_states(&self, balance: f64) -> f64 {
        balance * self.fused_bytes() / self.operations_per_state()
    }
}
// ANCHOR_END: cost

/// The models of the gallery, with the sizes of their papers or common sizes.
pub const MODELS: [Cost; 10] = [
    Cost {
        reading: None,
        making: 1.0,
        ..real("moving average, returns, interest", 1.0, 1.0, false)
    },
    Cost {
        complex: true,
        reading: Some(3.0),
        making: 0.0,
        ..real("second-order filter", 1.0, 1.0, false)
    },
    Cost {
        complex: true,
        reading: Some(4.0),
        making: 2.0,
        ..real("S4D, 32 complex states", 32.0, 1.0, false)
    },
    // Every state belongs to all channels: a matrix product before and after.
    Cost {
        complex: true,
        reading: Some(4.0 * 256.0),
        making: 4.0 * 256.0,
        ..real("S5, LRU: 256 states of 256 channels", 1.0, 1.0, false)
    },
    Cost { reading: None, making: 16.0, ..real("RG-LRU", 1.0, 3.0, true) },
    Cost { reading: None, making: 10.0, ..real("minGRU", 1.0, 2.0, true) },
    Cost { reading: Some(0.5), making: 7.0, ..real("xLSTM's scalar memory", 2.0, 3.0, true) },
    Cost { reading: Some(3.0), making: 1.0, ..real("RWKV-4", 2.0, 2.0, false) },
    // All channels of a position share B and C, so a channel's share of their bytes is small.
    Cost { reading: Some(2.0), making: 4.0, ..real("Mamba, 16 states", 16.0, 2.0, true) },
    // For each of the 64 values: its share of four vectors of 64 keys, and the value itself.
    Cost {
        complex: true,
        reading: Some(2.0),
        making: 1.0 + 8.0 / 64.0,
        ..real("GateLoop, 64 keys by 64 values", 64.0, 5.0, true)
    },
];

const fn real(model: &'static str, states: f64, sources: f64, varying: bool) -> Cost {
    Cost { model, states, complex: false, sources, varying, making: 0.0, reading: None }
}

/// Formats the number of free states, with a word for zero.
#[cfg(feature = "story")]
fn free(states: f64) -> String {
    if states < 1.0 { String::from("none") } else { format!("{states:.0}") }
}

/// Makes the table of the closing page.
#[cfg(feature = "story")]
pub fn table() -> lesson::Table {
    let mut table = lesson::Table::new([
        "model",
        "alone",
        "operations",
        "unfused",
        "fused",
        "ops/byte",
        "free",
    ]);
    for cost in MODELS {
        table.row([
            cost.model.to_owned(),
            format!("{:.2}", cost.recurrence_operations() / cost.recurrence_bytes()),
            format!("{:.0}", cost.operations()),
            format!("{:.0}", cost.unfused_bytes()),
            format!("{:.0}", cost.fused_bytes()),
            format!("{:.1}", cost.operations() / cost.fused_bytes()),
            free(cost.free_states(H200_BALANCE)),
        ]);
    }
    table
}
