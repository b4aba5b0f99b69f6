//! The variables of a module in device memory, for the host.

use std::sync::Arc;

use crate::memory::global::{Memory, MemoryError};
use crate::parse::Module;

/// A variable of a module, and its place in a memory.
///
/// ```
/// use simt::{Launch, Memory, Module};
///
/// let module = Module::parse(
///     ".version 8.0 .target sm_80 .address_size 64
///     .visible .global .align 4 .u32 calls = 40;
///     .visible .entry count() {
///         .reg .b32 %r<2>;
///         atom.global.add.u32 %r1, [calls], 1;
///     }",
/// )?;
/// let memory = Memory::new(1 << 20);
/// let calls = memory.variable(&module, "calls")?.expect("it is there");
/// for _ in 0..2 {
///     let kernel = module.kernel("count").expect("it is there");
///     Launch::new(kernel, [1; 3], [1; 3], &[]).prepare(&memory)?.run(0..1)?;
/// }
/// let mut value = [0; 4];
/// memory.read(calls.address, &mut value)?;
/// assert_eq!(u32::from_le_bytes(value), 42);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variable {
    /// The name in the PTX.
    pub name: Arc<str>,
    /// The address: for [`Memory::read`], for [`Memory::write`], and as an argument of kernels.
    pub address: u64,
    /// The size in bytes.
    pub bytes: u64,
    /// True if the variable is in constant memory, which kernels only read.
    pub constant: bool,
}

impl Memory {
    /// Returns the variables of a module, including those that a kernel declares in its body. If
    /// they are not in the memory yet, they are placed there with their initial values.
    ///
    /// # Errors
    ///
    /// Returns [`MemoryError::OutOfMemory`] if the memory has no room for them.
    pub fn variables(&self, module: &Module) -> Result<Vec<Variable>, MemoryError> {
        let declared = module.variables();
        let addresses = self.place(declared)?;
        let variables = declared.iter().zip(addresses.iter());
        Ok(variables
            .map(|(declared, &address)| Variable {
                name: declared.name.clone(),
                address,
                bytes: declared.bytes.into(),
                constant: declared.constant,
            })
            .collect())
    }

    /// Returns the variable of a module with this name; see [`Memory::variables`].
    ///
    /// # Errors
    ///
    /// Returns [`MemoryError::OutOfMemory`] if the memory has no room for the module's variables.
    pub fn variable(&self, module: &Module, name: &str) -> Result<Option<Variable>, MemoryError> {
        Ok(self.variables(module)?.into_iter().find(|variable| &*variable.name == name))
    }
}
