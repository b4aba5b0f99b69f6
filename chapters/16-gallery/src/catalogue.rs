//! The table of the gallery: the input `x` and the coefficient `c` of each model.

/// One line of the table.
#[derive(Debug, Clone, Copy)]
pub struct Entry {
    /// The name of the model.
    pub model: &'static str,
    /// The input.
    pub input: &'static str,
    /// The coefficient.
    pub coefficient: &'static str,
    /// The data that the coefficients depend on.
    pub depends_on: &'static str,
    /// The formula of the output.
    pub read: &'static str,
}

/// All models, from the oldest kind to the newest.
pub const ENTRIES: [Entry; 12] = [
    entry("compound interest", "deposit", "1 + rate", "time", "y"),
    entry("discounted returns", "reward", "γ, 0 at an end", "data", "y, in reverse"),
    entry("filter of second order", "signal", "pole, complex", "nothing", "Re(w₁y₁ + w₂y₂)"),
    entry("S4D", "B′u", "exp(ΔA), complex", "nothing", "2 Re Σ Cₙyₙ"),
    entry("S5", "B′u, all channels", "exp(ΔₗΛ), complex", "time step", "2 Re(C y)"),
    entry("LRU", "√(1 − |λ|²) B u", "λ = exp(−eᵛ + ieᶿ)", "nothing", "Re(C y)"),
    entry("RG-LRU", "√(1 − c²) i u", "σ(Λ)^(8r)", "data", "y"),
    entry("xLSTM, scalar", "i z, and i", "f", "data", "y₁ / y₂"),
    entry("minGRU", "z · candidate", "1 − z", "data", "y"),
    entry("minLSTM", "i · candidate / (f + i)", "f / (f + i)", "data", "y"),
    entry("GateLoop", "k vᵀ", "σ(α) exp(iβ)", "data", "q y"),
    entry("RWKV-4", "eᵏ v, and eᵏ", "e⁻ʷ", "nothing", "weighted y₁ / y₂"),
];

const fn entry(
    model: &'static str,
    input: &'static str,
    coefficient: &'static str,
    depends_on: &'static str,
    read: &'static str,
) -> Entry {
    Entry { model, input, coefficient, depends_on, read }
}

/// Makes the table for terminal and page.
#[cfg(feature = "story")]
pub fn table() -> lesson::Table {
    let mut table =
        lesson::Table::new(["model", "input x", "coefficient c", "c depends on", "output"]);
    for entry in ENTRIES {
        table.row([entry.model, entry.input, entry.coefficient, entry.depends_on, entry.read]);
    }
    table
}
