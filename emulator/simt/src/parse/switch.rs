//! `brx.idx`: branches to one of several labels, as a `switch` becomes.
//!
//! It is a comparison and a branch for each label, of which only the first one counts.

use crate::isa::{Compare, Guard, Logic, Op, Type};
use crate::parse::body::slots::Constant;
use crate::parse::body::state::Body;
use crate::parse::source::lexer::show;
use crate::parse::source::statement::{Atom, Operand, Statement};
use crate::parse::source::types::U32;

/// The most labels of a list.
const MOST_TARGETS: usize = 4096;

impl<'s> Body<'_, 's> {
    /// `.branchtargets A, B;` behind a label, which is the list's name.
    pub(super) fn targets(&mut self) -> Result<(), String> {
        let label = self.last_label.take().ok_or("`.branchtargets` stands behind a label")?;
        let mut targets = Vec::new();
        loop {
            if targets.len() == MOST_TARGETS {
                return Err(format!("a list of more than {MOST_TARGETS} labels"));
            }
            targets.push(self.context.cursor.name()?);
            if self.context.cursor.accept(b';')? {
                break;
            }
            self.context.cursor.expect(b',')?;
        }
        self.lists.insert(label, targets);
        Ok(())
    }

    /// `brx.idx %r1, list;`
    pub(super) fn switch(
        &mut self,
        guard: Option<Guard>,
        statement: &Statement<'s>,
        line: u32,
    ) -> Result<(), String> {
        let [index, Operand::Atom(Atom::Name(list))] = statement.operands[..] else {
            return Err("it takes an index and the label of a list of labels".to_string());
        };
        let a = self.source(&index, U32)?;
        // Of each list there is one: so that no source is much shorter than what it becomes.
        let targets = self.lists.remove(list).ok_or_else(|| {
            format!("`{}` is no list of `.branchtargets` before it that is not used", show(list))
        })?;
        let opcode = self.context.opcode(statement.opcode);
        let [d, _] = self.scratch_predicates()?;
        let holds = Some(Guard { predicate: d, negated: false });
        let compare = |compare, b| Op::SetPredicate {
            compare,
            or_unordered: false,
            ty: Type::U32,
            d,
            complement: None,
            combine: guard.map(|guard| (Logic::And, guard)),
            a,
            b,
        };
        for (number, target) in (0..).zip(&targets) {
            let b = self.slots.constant(Constant::Word(number))?;
            self.push(None, compare(Compare::Eq, b), line, &opcode)?;
            let branch = self.branch(target, false);
            self.push(holds, branch, line, &opcode)?;
        }
        let b = self.slots.constant(Constant::Word(targets.len() as u32))?;
        self.push(None, compare(Compare::Ge, b), line, &opcode)?;
        self.push(holds, Op::Trap {}, line, &opcode)
    }
}
