//! The table of the gallery: what `x` and `c` are in each.

/// One line of it.
#[derive(Debug, Clone, Copy)]
pub struct Entry {
    /// Its name.
    pub model: &'static str,
    /// What the input is.
    pub input: &'static str,
    /// What the coefficient is.
    pub coefficient: &'static str,
    /// What the coefficients depend on.
    pub depends_on: &'static str,
    /// What the output is made of.
    pub read: &'static str,
}

/// All of them, from the oldest to the newest kind.
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

/// The table, for terminal and page.
#[cfg(feature = "story")]
pub fn table() -> lesson::Table {
    let mut table =
        lesson::Table::new(["model", "input x", "coefficient c", "c depends on", "output"]);
    for entry in ENTRIES {
        table.row([entry.model, entry.input, entry.coefficient, entry.depends_on, entry.read]);
    }
    table
}
