//! Reads the body of a kernel or a function: its statements, in blocks of braces.

use super::decode::{check_opcode, decode};
use crate::isa::{Bank, Guard, Instruction, Kernel, Op, Passed};
use crate::parse::body::context::Context;
use crate::parse::body::names::{Named, Pending};
use crate::parse::body::slots::Constant;
use crate::parse::body::state::Body;
use crate::parse::body::unit::{Formal, Signature, Unit, VariableSpace};
use crate::parse::source::cursor::Parsed;
use crate::parse::source::lexer::{Kind, Token, show};
use crate::parse::source::statement::Statement;

impl<'c, 's> Body<'c, 's> {
    /// Reads the body of a kernel from its opening brace to its closing brace.
    pub(super) fn kernel(head: Kernel, context: &'c mut Context<'s>) -> Parsed<Unit> {
        let mut body = Body::new(head, context);
        body.context.cursor.expect(b'{')?;
        body.statements()?;
        Ok(body.unit())
    }

    /// Reads the body of a function from its opening brace to its closing brace.
    pub(super) fn function(signature: Signature<'s>, context: &'c mut Context<'s>) -> Parsed<Unit> {
        let head = Kernel { name: signature.name.into(), ..Kernel::default() };
        let mut body = Body::new(head, context);
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
        (body.unit.params, body.unit.returns) = (params, returns);
        Ok(body.unit())
    }

    fn unit(mut self) -> Unit {
        let kernel = &mut self.unit.kernel;
        kernel.registers = self.slots.registers.take().unwrap_or_default();
        kernel.slots = [Bank::Word, Bank::Long, Bank::Predicate].map(|bank| self.slots.count(bank));
        (kernel.presets, self.unit.late) = self.slots.presets();
        self.unit
    }

    fn statements(&mut self) -> Parsed<()> {
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

    fn directive(&mut self) -> Parsed<()> {
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
            // The arguments of a call are checked when it is executed.
            "callprototype" | "calltargets" => self.context.cursor.skip_past(b';'),
            other => Err(format!("`.{other}` is not supported in a kernel's body")),
        }
    }

    /// Reads `.loc 1 8 48, function_name $L__info_string0, inlined_at 1 10 116`, which has no
    /// semicolon. After the first three numbers comes the place where the function was inlined.
    fn location(&mut self) -> Parsed<()> {
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
        // Line 0 marks code of the compiler, which has no line.
        let file = self.context.file(file, first)?;
        self.source = (line > 0).then_some((file, line));
        Ok(())
    }

    fn label_or_instruction(
        &mut self,
        token: Token<'s>,
        statement: &mut Statement<'s>,
    ) -> Parsed<()> {
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
            return self
                .context
                .names
                .declare(opcode.text, Named::Label(self.unit.kernel.code.len() as u32));
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
            // `call` has a separate syntax for its operands.
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

    /// Ends the code of a body that can reach its end: a kernel exits, and a function returns.
    fn end(&mut self, line: u32) -> Parsed<()> {
        let leaves = matches!(
            self.unit.kernel.code.last(),
            Some(Instruction {
                guard: None,
                op: Op::Exit {} | Op::Return { .. } | Op::Branch { .. }
            })
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
    fn close(&mut self) -> Parsed<()> {
        let code = &mut self.unit.kernel.code;
        let unresolved = self.context.names.close(|pending, label| {
            if let Op::Branch { target, .. } = &mut code[pending.instruction].op {
                *target = label;
            }
        });
        let Some(Pending { label, instruction }) = unresolved else { return Ok(()) };
        self.context.cursor.blame(self.unit.kernel.places[instruction].line);
        Err(format!("the label `{}` is not declared where it is branched to", show(label)))
    }
}
