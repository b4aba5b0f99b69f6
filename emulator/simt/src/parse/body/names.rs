//! The meanings of names, in the module, the kernel and the blocks in braces within it.
//!
//! `.reg .b32 %r<1000>` declares a thousand registers, of which a kernel may use ten. So a name is
//! split into a prefix and a number, and a register gets a slot at its first use.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::slots::Slots;
use crate::isa::Slot;
use crate::parse::source::lexer::shortened;
use crate::parse::source::types::Class;

/// The deepest nesting of braces.
const DEEPEST: usize = 32;
/// The most names of a module and one of its kernels together.
const MOST_NAMES: usize = 1 << 20;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Named {
    Register(Register),
    /// The index of a variable in any state space.
    Variable(usize),
    /// The index of a parameter.
    Param(usize),
    /// The index of the next instruction after the label.
    Label(u32),
    Kernel,
    /// The number of a function.
    Function(usize),
    /// The index of the error of a variable that is not supported.
    Refused(usize),
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Register {
    pub(crate) class: Class,
    pub(crate) slot: Slot,
}

/// A branch to a label that is not declared yet.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pending<'s> {
    pub(crate) label: &'s str,
    pub(crate) instruction: usize,
}

#[derive(Debug, Default)]
pub(crate) struct Names<'s> {
    /// The module's scope, the kernel's scope, and a scope for each open brace.
    scopes: Vec<Scope<'s>>,
    count: usize,
}

#[derive(Debug, Default)]
struct Scope<'s> {
    families: HashMap<&'s str, Family>,
    pending: Vec<Pending<'s>>,
    count: usize,
}

/// Names that differ only in their number.
#[derive(Debug, Default)]
struct Family {
    bare: Option<Named>,
    numbered: HashMap<u32, Named>,
    range: Option<(Class, u32)>,
}

impl<'s> Names<'s> {
    pub(crate) fn open(&mut self) -> Result<(), String> {
        if self.scopes.len() == DEEPEST {
            return Err(format!("braces nested more than {DEEPEST} deep"));
        }
        self.scopes.push(Scope::default());
        Ok(())
    }

    /// Closes the innermost scope. Calls `set` for each branch whose label is in it. Other
    /// branches move to the outer scope; if that is the module's scope, returns the first of them.
    pub(crate) fn close(&mut self, mut set: impl FnMut(Pending<'s>, u32)) -> Option<Pending<'s>> {
        let scope = self.scopes.pop()?;
        self.count -= scope.count;
        let mut unresolved = Vec::new();
        for pending in &scope.pending {
            match scope.label(pending.label) {
                Some(target) => set(*pending, target),
                None => unresolved.push(*pending),
            }
        }
        match self.scopes.as_mut_slice() {
            [] | [_] => unresolved.first().copied(),
            [.., outer] => {
                outer.pending.append(&mut unresolved);
                None
            }
        }
    }

    /// Closes all scopes but the module's scope, after a kernel is refused.
    pub(crate) fn close_all_but_first(&mut self) {
        let closed = self.scopes.drain(self.scopes.len().min(1)..);
        self.count -= closed.map(|scope| scope.count).sum::<usize>();
    }

    /// Records a branch, which is resolved when its scope is closed.
    pub(crate) fn branch(&mut self, pending: Pending<'s>) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.pending.push(pending);
        }
    }

    /// Declares one name in the innermost scope.
    pub(crate) fn declare(&mut self, name: &'s str, named: Named) -> Result<(), String> {
        let (prefix, number) = split(name);
        let family = self.family(prefix)?;
        let free = match number {
            None => family.bare.replace(named).is_none(),
            Some(number) => {
                let in_range = family.range.is_some_and(|(_, count)| number < count);
                match family.numbered.entry(number) {
                    Entry::Vacant(entry) if !in_range => {
                        entry.insert(named);
                        true
                    }
                    _ => false,
                }
            }
        };
        if free { Ok(()) } else { Err(twice(name)) }
    }

    /// Declares `prefix0` to `prefix(count - 1)`.
    pub(crate) fn declare_range(
        &mut self,
        prefix: &'s str,
        class: Class,
        count: u32,
    ) -> Result<(), String> {
        if prefix.ends_with(|c: char| c.is_ascii_digit()) {
            let shown = shortened(prefix, 40);
            return Err(format!("a range of registers whose name `{shown}` ends in a digit"));
        }
        let family = self.family(prefix)?;
        let taken = family.numbered.keys().any(|&number| number < count);
        if taken || family.range.replace((class, count)).is_some() {
            return Err(twice(&format!("{}<{count}>", shortened(prefix, 40))));
        }
        Ok(())
    }

    /// Returns the meaning of a name that was declared individually.
    pub(crate) fn declared(&self, name: &str) -> Option<Named> {
        let (prefix, number) = split(name);
        self.scopes.iter().rev().find_map(|scope| scope.families.get(prefix)?.get(number))
    }

    /// Returns the meaning of a name where it is used. Gives a register of a range its slot.
    pub(crate) fn find(&mut self, name: &str, slots: &mut Slots) -> Result<Option<Named>, String> {
        let (prefix, number) = split(name);
        for scope in self.scopes.iter_mut().rev() {
            let Some(family) = scope.families.get_mut(prefix) else { continue };
            let Some(number) = number else {
                if family.bare.is_some() {
                    return Ok(family.bare);
                }
                continue;
            };
            if let Some(&named) = family.numbered.get(&number) {
                return Ok(Some(named));
            }
            if let Some((class, count)) = family.range
                && number < count
            {
                let named = Named::Register(Register { class, slot: slots.register(class, name)? });
                family.numbered.insert(number, named);
                return Ok(Some(named));
            }
        }
        Ok(None)
    }

    fn family(&mut self, prefix: &'s str) -> Result<&mut Family, String> {
        self.count += 1;
        let scope = self.scopes.last_mut().filter(|_| self.count <= MOST_NAMES);
        let scope = scope.ok_or_else(|| format!("more than {MOST_NAMES} names"))?;
        scope.count += 1;
        Ok(scope.families.entry(prefix).or_default())
    }
}

impl Scope<'_> {
    fn label(&self, name: &str) -> Option<u32> {
        let (prefix, number) = split(name);
        match self.families.get(prefix)?.get(number) {
            Some(Named::Label(target)) => Some(target),
            _ => None,
        }
    }
}

impl Family {
    fn get(&self, number: Option<u32>) -> Option<Named> {
        match number {
            None => self.bare,
            Some(number) => self.numbered.get(&number).copied(),
        }
    }
}

fn twice(name: &str) -> String {
    format!("`{}` is declared twice", shortened(name, 60))
}

/// Splits `%r12` into `%r` and 12. A number with a leading zero or ten digits is part of the name.
fn split(name: &str) -> (&str, Option<u32>) {
    let digits = name.bytes().rev().take_while(u8::is_ascii_digit).take(10).count();
    let (prefix, number) = name.split_at(name.len() - digits);
    match number.parse() {
        Ok(value) if digits < 10 && (digits == 1 || !number.starts_with('0')) => {
            (prefix, Some(value))
        }
        _ => (name, None),
    }
}
