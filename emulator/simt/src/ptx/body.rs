//! The body of a kernel: statement after statement, in blocks of braces.

use std::collections::HashMap;
use std::sync::Arc;

use super::context::Context;
use super::declare::{MOST_LOCAL, VariableSpace};
use super::decode::{check_opcode, decode};
use super::entry::Entry;
use super::function::{Formal, Signature};
use super::lexer::{Kind, Token};
use super::link::Unit;
use super::names::{Class, Named, Pending, Register};
use super::operand::show;
use super::program::{
    Address, Base, Call, Guard, Instruction, Kernel, Op, Param, Passed, Place, SharedVariable, Slot,
};
use super::slots::{Bank, Constant, Slots};
use super::statement::Statement;

const MOST_INSTRUCTIONS: usize = 1 << 20;
/// What dynamic shared memory is aligned to at least: the widest access.
const DYNAMIC_ALIGN: u32 = 16;

/// A kernel or a function in the making.
#[derive(Debug)]
pub(super) struct Body<'c, 's> {
    pub(super) context: &'c mut Context<'s>,
    pub(super) slots: Slots,
    /// Those in shared memory that have been used, if their names are asked for.
    pub(super) variables: Vec<SharedVariable>,
    pub(super) params: Vec<Param>,
    pub(super) static_shared: u32,
    pub(super) local_bytes: u32,
    pub(super) dynamic_align: u32,
    /// Where the variables lie that have been used, by their ids.
    pub(super) placed: HashMap<usize, u32>,
    /// Of a function, where its frame begins: local memory is reached through it.
    pub(super) frame: Option<Slot>,
    /// Of a function, the registers that are its results, and where they go in the frame.
    results: Vec<(Register, u32)>,
    pub(super) calls: Vec<Call>,
    /// What an instruction needs before it, where its operands are no registers.
    pub(super) preceded_by: Vec<Op>,
    /// What an instruction needs to be followed by, where one operation does not express it.
    pub(super) followed_by: Vec<Op>,
    sinks: [Option<Slot>; 2],
    carry: Option<Slot>,
    scratch_predicates: Option<[Slot; 2]>,
    code: Vec<Instruction>,
    places: Vec<Place>,
    opcodes: Vec<Arc<str>>,
    source: Option<(u16, u32)>,
    labelled_end: bool,
    /// The label that has been read last, if no instruction stands behind it.
    pub(super) last_label: Option<&'s str>,
    /// Lists of labels, by the label before each, that no branch has used.
    pub(super) lists: HashMap<&'s str, Vec<&'s str>>,
}

impl<'c, 's> Body<'c, 's> {
    /// Reads the body of a kernel, of which the opening brace is next, to its closing brace.
    pub(super) fn kernel(entry: Entry, context: &'c mut Context<'s>) -> Result<Unit, String> {
        let mut body = Body::new(context);
        body.params.clone_from(&entry.params);
        body.context.cursor.expect(b'{')?;
        body.statements()?;
        Ok(body.unit(entry, Vec::new(), Vec::new()))
    }

    /// Reads the body of a function, of which the opening brace is next, to its closing brace.
    pub(super) fn function(
        signature: Signature<'s>,
        context: &'c mut Context<'s>,
    ) -> Result<Unit, String> {
        let mut body = Body::new(context);
        body.frame = Some(body.slots.constant(Constant::Frame)?);
        let (mut returns, mut params) = (Vec::new(), Vec::new());
        for formal in &signature.returns {
            returns.push(Passed { offset: body.formal(formal)?, bytes: formal.bytes });
        }
        let mut first = Vec::new();
        for formal in &signature.params {
            let offset = body.formal(formal)?;
            params.push(Passed { offset, bytes: formal.bytes });
            if let Some(typed) = formal.register {
                let slot = body.register(formal.name)?.slot;
                first.push(body.load_from_frame(typed, slot, offset));
            }
        }
        for (Formal { name, register, .. }, place) in signature.returns.iter().zip(&returns) {
            if register.is_some() {
                let register = body.register(name)?;
                body.results.push((register, place.offset));
            }
        }
        let brace = body.context.cursor.next()?;
        let opcode = body.context.opcode("ld.param");
        for op in first {
            body.push(None, op, brace.line, &opcode)?;
        }
        body.statements()?;
        Ok(body.unit(Entry::of_function(signature.name), params, returns))
    }

    fn new(context: &'c mut Context<'s>) -> Self {
        let named = context.named;
        Body {
            context,
            slots: Slots::new(named),
            variables: Vec::new(),
            params: Vec::new(),
            static_shared: 0,
            local_bytes: 0,
            dynamic_align: DYNAMIC_ALIGN,
            placed: HashMap::new(),
            frame: None,
            results: Vec::new(),
            calls: Vec::new(),
            preceded_by: Vec::new(),
            followed_by: Vec::new(),
            sinks: [None; 2],
            carry: None,
            scratch_predicates: None,
            code: Vec::new(),
            places: Vec::new(),
            opcodes: Vec::new(),
            source: None,
            labelled_end: false,
            last_label: None,
            lists: HashMap::new(),
        }
    }

    fn unit(mut self, entry: Entry, params: Vec<Passed>, returns: Vec<Passed>) -> Unit {
        let registers = self.slots.registers.take().unwrap_or_default();
        let [slots32, slots64, predicates] =
            [Bank::Word, Bank::Long, Bank::Predicate].map(|bank| self.slots.count(bank));
        let (presets, late) = self.slots.presets();
        let kernel = Kernel {
            name: entry.name,
            params: self.params,
            param_bytes: entry.param_bytes,
            static_shared: self.static_shared,
            dynamic_shared: 0,
            local_bytes: self.local_bytes,
            max_threads: entry.max_threads,
            required_threads: entry.required_threads,
            slots32,
            slots64,
            predicates,
            presets,
            registers,
            variables: self.variables,
            code: self.code,
            places: self.places,
            opcodes: self.opcodes,
            files: Arc::from([]),
            entry: 0,
            calls: self.calls,
            functions: Vec::new(),
            globals: Arc::from([]),
        };
        let (placed, dynamic_align) = (self.placed, self.dynamic_align);
        Unit { kernel, late, placed, dynamic_align, params, returns }
    }

    fn statements(&mut self) -> Result<(), String> {
        let mut statement = Statement::empty();
        let mut depth = 1;
        loop {
            let token = self.context.cursor.begin()?;
            match token.kind {
                Kind::Mark(b'{') => {
                    self.context.cursor.next()?;
                    self.context.names.open()?;
                    depth += 1;
                }
                Kind::Mark(b'}') => {
                    self.context.cursor.next()?;
                    depth -= 1;
                    if depth == 0 {
                        self.end(token.line)?;
                        return self.close();
                    }
                    self.close()?;
                }
                Kind::Directive => self.directive()?,
                Kind::End => return Err("the kernel's closing brace is missing".to_string()),
                _ => self.label_or_instruction(token, &mut statement)?,
            }
        }
    }

    fn directive(&mut self) -> Result<(), String> {
        match self.context.cursor.directive()? {
            "reg" => self.registers(),
            "loc" => self.location(),
            "pragma" => self.context.pragma(),
            "shared" => self.context.variables(VariableSpace::Shared, false),
            "local" => self.context.variables(VariableSpace::Local, false),
            "extern" => {
                if !self.context.cursor.accept_directive("shared")? {
                    return Err("in a kernel only `.shared` can be `.extern`".to_string());
                }
                self.context.variables(VariableSpace::Shared, true)
            }
            "global" => self.context.device_variables(VariableSpace::Global, false),
            "const" => self.context.device_variables(VariableSpace::Const, false),
            "param" => self.context.variables(VariableSpace::Param, false),
            "branchtargets" => self.targets(),
            // What a call hands over is checked when it is executed.
            "callprototype" | "calltargets" => self.context.cursor.skip_past(b';'),
            other => Err(format!("`.{other}` is not supported in a kernel's body")),
        }
    }

    /// `.loc 1 8 48, function_name $L__info_string0, inlined_at 1 10 116`, on one line and without
    /// a semicolon. What follows the first three numbers says where the function was inlined.
    fn location(&mut self) -> Result<(), String> {
        let cursor = &mut self.context.cursor;
        let first = cursor.peek()?.line;
        let file = cursor.count(u32::MAX)?;
        let line = cursor.count(u32::MAX)?;
        cursor.count(u32::MAX)?;
        if cursor.accept(b',')? {
            match cursor.name()? {
                "function_name" => {}
                other => return Err(format!("`{}` is unknown in a `.loc`", show(other))),
            }
            cursor.name()?;
            if cursor.accept(b'+')? {
                cursor.count(u32::MAX)?;
            }
            cursor.expect(b',')?;
            if cursor.name()? != "inlined_at" {
                return Err("`inlined_at` was expected".to_string());
            }
            for _ in 0..3 {
                cursor.count(u32::MAX)?;
            }
        }
        // Line 0: the compiler's own, of no line.
        let file = self.context.file(file, first)?;
        self.source = (line > 0).then_some((file, line));
        Ok(())
    }

    fn label_or_instruction(
        &mut self,
        token: Token<'s>,
        statement: &mut Statement<'s>,
    ) -> Result<(), String> {
        statement.read_guard(&mut self.context.cursor)?;
        let opcode = self.context.cursor.next()?;
        if opcode.kind != Kind::Word {
            return Err(format!("an instruction was expected, not {}", opcode.quoted()));
        }
        if self.context.cursor.accept(b':')? {
            if statement.guard.is_some() {
                return Err("a label cannot have a guard".to_string());
            }
            if opcode.text.contains('.') {
                return Err("a label cannot contain a dot".to_string());
            }
            self.labelled_end = true;
            self.last_label = Some(opcode.text);
            return self.context.names.declare(opcode.text, Named::Label(self.code.len() as u32));
        }
        self.last_label = None;
        statement.split(opcode.text)?;
        let guard = match statement.guard {
            None => None,
            Some((name, negated)) => {
                Some(Guard { predicate: self.destination_predicate(name)?, negated })
            }
        };
        if let ["brx", "idx"] | ["brx", "idx", "uni"] = *statement.parts {
            statement.read_operands(&mut self.context.cursor)?;
            return self.switch(guard, statement, token.line);
        }
        let op = match *statement.parts {
            // With brackets of its own.
            ["call"] | ["call", "uni"] => self.call()?,
            _ => {
                check_opcode(&statement.parts)?;
                statement.read_operands(&mut self.context.cursor)?;
                decode(self, &statement.parts, &statement.operands)?
            }
        };
        let opcode = self.context.opcode(statement.opcode);
        for op in std::mem::take(&mut self.preceded_by) {
            self.push(guard, op, token.line, &opcode)?;
        }
        self.push(guard, op, token.line, &opcode)?;
        for op in std::mem::take(&mut self.followed_by) {
            self.push(guard, op, token.line, &opcode)?;
        }
        Ok(())
    }

    pub(super) fn push(
        &mut self,
        guard: Option<Guard>,
        op: Op,
        line: u32,
        opcode: &Arc<str>,
    ) -> Result<(), String> {
        if self.code.len() == MOST_INSTRUCTIONS {
            return Err(format!("more than {MOST_INSTRUCTIONS} instructions in a kernel"));
        }
        self.labelled_end = false;
        self.code.push(Instruction { guard, op });
        self.places.push(Place { line, source: self.source });
        self.opcodes.push(opcode.clone());
        Ok(())
    }

    /// A slot for a value between two operations of one instruction.
    pub(super) fn scratch(&mut self) -> Result<Slot, String> {
        self.sink(false)
    }

    /// A slot for values that nobody reads: `_` in a vector.
    pub(super) fn sink(&mut self, wide: bool) -> Result<Slot, String> {
        if let Some(slot) = self.sinks[usize::from(wide)] {
            return Ok(slot);
        }
        let slot = self.slots.allocate(if wide { Bank::Long } else { Bank::Word })?;
        self.sinks[usize::from(wide)] = Some(slot);
        Ok(slot)
    }

    /// Predicates between the operations of one instruction.
    pub(super) fn scratch_predicates(&mut self) -> Result<[Slot; 2], String> {
        if let Some(slots) = self.scratch_predicates {
            return Ok(slots);
        }
        let mut allocate = || self.slots.allocate(Bank::Predicate);
        let slots = [allocate()?, allocate()?];
        Ok(*self.scratch_predicates.insert(slots))
    }

    /// The predicate that is the carry flag.
    pub(super) fn carry(&mut self) -> Result<Slot, String> {
        match self.carry {
            Some(slot) => Ok(slot),
            None => Ok(*self.carry.insert(self.slots.allocate(Bank::Predicate)?)),
        }
    }

    /// `ret`: out of the kernel, or back to where the function was called.
    pub(super) fn leave(&mut self) -> Op {
        if self.frame.is_none() {
            return Op::Exit;
        }
        for (register, offset) in std::mem::take(&mut self.results) {
            if let Class::Data(typed) = register.class {
                self.preceded_by.push(self.store_to_frame(typed, register.slot, offset));
            }
            self.results.push((register, offset));
        }
        // Which one it is is known when the kernel is linked.
        Op::Return { function: 0 }
    }

    /// So many bytes of local memory: of the kernel's, or in the function's frame.
    pub(super) fn room(&mut self, bytes: u32, align: u32) -> Result<u32, String> {
        // Whole words, so that calls can copy them.
        let offset = self.local_bytes.next_multiple_of(align.max(4));
        let end = offset.checked_add(bytes).filter(|&end| end <= MOST_LOCAL);
        let end = end.and_then(|end| end.checked_next_multiple_of(4));
        self.local_bytes = end.ok_or_else(|| {
            format!("the variables of local memory take more than {MOST_LOCAL} bytes")
        })?;
        Ok(offset)
    }

    /// An address in the frame.
    pub(super) fn in_frame(&self, offset: i64) -> Address {
        Address { base: self.frame.map_or(Base::Zero, Base::Long), offset }
    }

    /// A branch to a label: its target is filled in when the block ends.
    pub(super) fn branch(&mut self, label: &'s str, uniform: bool) -> Op {
        self.context.names.branch(Pending { label, instruction: self.code.len() });
        Op::Branch { target: 0, uniform }
    }

    /// An addition or the like that does not say how it rounds.
    pub(super) fn note_unrounded(&mut self, opcode: &str) {
        let line = self.context.cursor.line();
        self.context.unrounded.push((line, Arc::from(opcode)));
    }

    /// A kernel that can fall off its end exits there, and a function returns.
    fn end(&mut self, line: u32) -> Result<(), String> {
        let leaves = matches!(
            self.code.last(),
            Some(Instruction { guard: None, op: Op::Exit | Op::Return { .. } | Op::Branch { .. } })
        );
        if leaves && !self.labelled_end {
            return Ok(());
        }
        let (opcode, op) = (self.context.opcode("ret"), self.leave());
        for op in std::mem::take(&mut self.preceded_by) {
            self.push(None, op, line, &opcode)?;
        }
        self.push(None, op, line, &opcode)
    }

    /// Closes the innermost block.
    fn close(&mut self) -> Result<(), String> {
        let code = &mut self.code;
        let unresolved = self.context.names.close(|pending, label| {
            if let Op::Branch { target, .. } = &mut code[pending.instruction].op {
                *target = label;
            }
        });
        let Some(Pending { label, instruction }) = unresolved else { return Ok(()) };
        self.context.cursor.blame(self.places[instruction].line);
        Err(format!("the label `{}` is not declared where it is branched to", show(label)))
    }
}
