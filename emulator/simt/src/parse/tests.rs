//! Decoding of instructions, where the opcode alone does not determine the result. Accepted and
//! refused forms are tested from outside, in `tests/suite/parser.rs`.

use super::module::Module;
use crate::isa::{
    Address, Atomic, Base, Binary, Clamp, Compare, Guard, Kernel, Logic, Op, Order, Place, Preset,
    Round, Space, Special, Type, Unary,
};

/// Parses these statements as a kernel; they begin on line 11. `%r1`, `%rd1` and so on get slots in
/// the order of their first use.
fn kernel(statements: &str) -> Kernel {
    let source = format!(
        ".version 8.0\n.target sm_80\n.address_size 64\n.extern .shared .align 32 .b8 dynamic[];\n\
         .visible .entry kernel(.param .u64 a, .param .u8 b)\n{{\n\
         .shared .align 8 .b8 first[12]; .shared .b32 second;\n\
         .reg .pred %p<9>; .reg .b16 %rs<9>; .reg .b32 %r<9>; .reg .b64 %rd<9>;\n\
         .reg .f32 %f<9>; .reg .f64 %fd<9>;\n\n{statements}\n}}\n.file 3 \"kernel.cu\"\n"
    );
    let module = Module::decode(&source, false, |_| {}).and_then(Module::complete);
    let module = module.unwrap_or_else(|error| panic!("{error}"));
    Kernel::clone(module.kernel("kernel").unwrap())
}

/// Returns the operations of these statements, without the final exit.
fn ops(statements: &str) -> Vec<Op> {
    let mut ops: Vec<Op> =
        kernel(statements).code.iter().map(|instruction| instruction.op).collect();
    assert_eq!(ops.pop(), Some(Op::Exit {}));
    ops
}

fn convert(to: Type, from: Type, d: u16, a: u16) -> Op {
    Op::Convert { to, from, round: Round::Nearest, integral: false, clamp: Clamp::Not, d, a }
}

#[test]
fn conversions_in_wider_registers() {
    assert_eq!(ops("cvt.s64.s32 %rd1, %r1;"), [convert(Type::S64, Type::S32, 0, 0)]);
    // The lower word of a 64-bit register, in a separate slot.
    let low = Op::Unpack32 { d: [Some(0), None], a: 0 };
    assert_eq!(ops("cvt.s64.s32 %rd1, %rd2;"), [low, convert(Type::S64, Type::S32, 1, 0)]);
    // A 32-bit register gets the sign, a 16-bit register the plain bits.
    let extended = [convert(Type::S8, Type::S32, 1, 0), convert(Type::S32, Type::S8, 1, 1)];
    assert_eq!(ops("cvt.s8.s32 %r1, %r2;"), extended);
    assert_eq!(ops("cvt.s8.s32 %rs1, %r2;"), [convert(Type::S8, Type::S32, 1, 0)]);
    assert_eq!(ops("cvt.u8.u32 %r1, %r2;"), [convert(Type::U8, Type::U32, 1, 0)]);
    let (to, from) = (Type::F32, Type::F32);
    let floor =
        Op::Convert { to, from, round: Round::Down, integral: true, clamp: Clamp::Not, d: 1, a: 0 };
    assert_eq!(ops("cvt.rmi.f32.f32 %f1, %f2;"), [floor]);
}

#[test]
fn comparisons() {
    let combine = Some((Logic::Or, Guard { predicate: 2, negated: true }));
    let compare = Compare::Le;
    let expected = Op::SetPredicate {
        compare,
        or_unordered: true,
        ty: Type::F64,
        d: 0,
        complement: Some(1),
        combine,
        a: 0,
        b: 1,
    };
    assert_eq!(ops("setp.leu.or.f64 %p1|%p2, %fd1, %fd2, !%p3;"), [expected]);
    let Op::SetPredicate { compare, ty, .. } = ops("setp.hs.u16 %p1, %rs1, 7;")[0] else {
        panic!()
    };
    assert_eq!((compare, ty), (Compare::Ge, Type::U16));
    let negated = Op::Select { ty: Type::F32, d: 0, a: 2, b: 1, predicate: 0 };
    assert_eq!(ops("selp.f32 %f1, %f2, %f3, !%p1;"), [negated]);
}

#[test]
fn signs_of_doubles() {
    let ty = Type::U64;
    let expected = [
        Op::Binary { op: Binary::And, ty, d: 5, a: 1, b: 3 },
        Op::Binary { op: Binary::And, ty, d: 0, a: 2, b: 4 },
        Op::Binary { op: Binary::Or, ty, d: 0, a: 0, b: 5 },
    ];
    assert_eq!(ops("copysign.f64 %fd1, %fd2, %fd3;"), expected);
}

#[test]
fn constants_are_presets() {
    let statements = "mov.u32 %r1, -1; mov.f32 %f1, 0fFFFFFFFF; add.s16 %rs1, %rs1, 65537; \
                      mov.u32 %r2, %tid.y; mov.u32 %r2, %tid.y; and.b64 %rd1, %rd1, -2; \
                      mov.pred %p1, 1; mov.f32 %f2, 1.5; mov.f64 %fd1, 0dC000000000000000;";
    let expected = [
        Preset::Word { slot: 1, value: u32::MAX },
        Preset::Word { slot: 4, value: 1 },
        Preset::Special { slot: 6, which: Special::Tid(1) },
        Preset::Long { slot: 1, value: -2i64 as u64 },
        Preset::Predicate { slot: 1, value: true },
        Preset::Word { slot: 8, value: 1.5f32.to_bits() },
        Preset::Long { slot: 3, value: (-2.0f64).to_bits() },
    ];
    assert_eq!(kernel(statements).presets, expected);
}

#[test]
fn variables_lie_one_behind_the_other() {
    let kernel = kernel(
        "mov.u32 %r1, dynamic; mov.u64 %rd1, dynamic+4; ld.shared.u32 %r2, [second+0]; \
         mov.u64 %rd2, first; st.shared.u32 [dynamic+8], 5;",
    );
    // `second` is used first; `first` needs an alignment of 8 bytes, `dynamic` of 32.
    assert_eq!((kernel.static_shared, kernel.dynamic_shared), (20, 32));
    let expected = [
        Preset::Word { slot: 1, value: 32 },
        Preset::Long { slot: 1, value: 36 },
        Preset::Long { slot: 3, value: 8 },
        Preset::Word { slot: 3, value: 5 },
    ];
    assert_eq!(kernel.presets, expected);
    let Op::Load { address, .. } = kernel.code[2].op else { panic!() };
    assert_eq!(address, Address { base: Base::Zero, offset: 0 });
    let Op::Store { address, .. } = kernel.code[4].op else { panic!() };
    assert_eq!(address, Address { base: Base::Word(1), offset: 8 });
}

#[test]
fn accesses() {
    let address = Address { base: Base::Long(0), offset: -4 };
    let (space, order, d) = (Space::Global, Order::Acquire, [0, 1, 0, 0]);
    let load = Op::Load { space, order, ty: Type::F32, count: 2, wide: false, d, address };
    assert_eq!(ops("ld.acquire.gpu.global.v2.f32 {%f1, %f2}, [%rd1+-4];"), [load]);
    let load = Op::LoadParam { ty: Type::S8, count: 1, wide: true, d: [0; 4], offset: 8 };
    assert_eq!(ops("ld.param.s8 %rd1, [b];"), [load]);
    for (hint, expected) in
        [("ld.global.cv", Order::Relaxed), ("ld.volatile", Order::Relaxed), ("ld.cg", Order::Weak)]
    {
        let Op::Load { order, .. } = ops(&format!("{hint}.u32 %r1, [%rd1];"))[0] else { panic!() };
        assert_eq!(order, expected, "{hint}");
    }
    let (op, space, order) = (Atomic::CompareAndSwap, Space::Shared, Order::AcquireRelease);
    let address = Address { base: Base::Word(1), offset: 0 };
    let swap = Op::Atomic { op, space, order, ty: Type::U32, d: Some(0), address, b: 2, c: 3 };
    assert_eq!(ops("atom.acq_rel.cta.shared.cas.b32 %r1, [%r2], %r3, %r4;"), [swap]);
}

#[test]
fn branches_and_places() {
    let kernel = kernel(
        ".loc 3 7 1\ntop: @!%p1 bra last;\n.loc 3 8 2, function_name name+4, inlined_at 3 9 1\n\
         { bra top; }\n.loc 3 0 0\nmov.u32 %r1, 1;\nlast:",
    );
    assert_eq!(kernel.code[0].guard, Some(Guard { predicate: 0, negated: true }));
    assert_eq!(kernel.code[0].op, Op::Branch { target: 3, uniform: false });
    assert_eq!(kernel.code[1].op, Op::Branch { target: 0, uniform: false });
    assert_eq!(kernel.code[2].op, Op::Unary { op: Unary::Move, ty: Type::U32, d: 0, a: 1 });
    let places = [(12, Some((0, 7))), (14, Some((0, 8))), (16, None), (18, None)];
    assert_eq!(kernel.places, places.map(|(line, source)| Place { line, source }));
    assert_eq!(&*kernel.files[0], "kernel.cu");
    let opcodes: Vec<&str> = kernel.opcodes.iter().map(|opcode| &**opcode).collect();
    assert_eq!(opcodes, ["bra", "bra", "mov.u32", "ret"]);
}

/// The size of each instruction; the machine reads them in sequence.
#[test]
fn operations_are_small() {
    assert_eq!(size_of::<Op>(), 40);
}

#[test]
fn every_opcode_of_the_table_has_a_family() {
    let opcodes = crate::instructions().iter().flat_map(|(.., opcodes)| *opcodes);
    // The operands of these two have a separate syntax.
    for opcode in opcodes.filter(|opcode| !["brx", "call"].contains(opcode)) {
        assert!(super::decode::check_opcode(&[opcode]).is_ok(), "{opcode}");
    }
}
