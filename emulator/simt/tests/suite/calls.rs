//! Functions: what is handed over and comes back, lanes that call and return at different times,
//! and calls that nest.

use simt::{Launch, Memory, Module, ReportKind, Stepper};

use crate::kernel::{BYTES, Bench};

const REGISTERS: &str =
    ".reg .pred %p<9>; .reg .b16 %h<9>; .reg .b32 %r<20>; .reg .f32 %f<9>; .reg .b64 %rd<20>;";

/// Functions, and a kernel `k` with `a` in `%rd1` and `b` in `%rd2`, the lane in `%r1`, and in
/// `%rd4` the address of its word of `b`.
fn source(functions: &str, body: &str) -> String {
    let functions = functions.replace("REGISTERS", REGISTERS);
    format!(
        ".version 8.0\n.target sm_80\n.address_size 64\n{functions}
        .visible .entry k(.param .u64 a, .param .u64 b)
        {{
            {REGISTERS}
            ld.param.u64 %rd1, [a];
            ld.param.u64 %rd2, [b];
            mov.u32 %r1, %tid.x;
            mul.wide.u32 %rd3, %r1, 4;
            add.u64 %rd4, %rd2, %rd3;
            {body}
            ret;
        }}"
    )
}

/// What the lanes of a warp store to `b`.
fn results(functions: &str, body: &str) -> [u32; 32] {
    let bench = Bench::of(&source(functions, body));
    bench.run().unwrap_or_else(|report| panic!("{report}"));
    let words = bench.words();
    let together = Bench::of(&source(functions, body));
    together.run_together().unwrap_or_else(|report| panic!("{report}"));
    assert_eq!(words, together.words::<32>());
    words
}

/// Calls `f` with the lane's number and stores what it returns.
const CALL: &str = "
    { .param .b32 argument; .param .b32 result;
      st.param.b32 [argument+0], %r1;
      call.uni (result), f, (argument);
      ld.param.b32 %r2, [result+0]; }
    st.global.u32 [%rd4], %r2;";

fn numbers(value: impl Fn(u32) -> u32) -> [u32; 32] {
    std::array::from_fn(|lane| value(lane as u32))
}

#[test]
fn values_are_handed_over_and_come_back() {
    let square = ".func (.param .b32 out) f(.param .b32 x)
        { REGISTERS ld.param.u32 %r1, [x]; mul.lo.u32 %r1, %r1, %r1; st.param.b32 [out], %r1; ret; }";
    assert_eq!(results(square, CALL), numbers(|x| x * x));
    // By another name, which is declared first and given at the end.
    let other = ".visible .func (.param .b32 out) g(.param .b32 x);";
    let text = source(&format!("{other} {square}"), &CALL.replace(", f,", ", g,")) + ".alias g, f;";
    let bench = Bench::of(&text);
    bench.run().unwrap();
    assert_eq!(bench.words(), numbers(|x| x * x));
    // Declared before it is defined, and behind the kernel.
    let declared = ".visible .func (.param .b32 out) f(.param .b32 x) ;";
    let text = source(declared, CALL) + &square.replace("REGISTERS", REGISTERS);
    let bench = Bench::of(&text);
    bench.run().unwrap_or_else(|report| panic!("{report}"));
    assert_eq!(bench.words(), numbers(|x| x * x));

    // Registers, a number, and a result that is not wanted.
    let registers = ".func (.reg .u32 out, .param .b64 more) f(.reg .u32 x, .reg .u32 y)
        { REGISTERS mad.lo.u32 out, x, 10, y; st.param.b64 [more], 0; setp.gt.u32 %p1, x, 5; @%p1 ret;
          add.u32 out, out, 100; }";
    let body = "call (%r2, _), f, (%r1, 7); st.global.u32 [%rd4], %r2;";
    let wanted = numbers(|x| 10 * x + 7 + if x > 5 { 0 } else { 100 });
    assert_eq!(results(registers, body), wanted);

    // Structs, read and written at places that are known when it runs, and a pointer to a variable
    // of the caller.
    let structs = ".func (.param .align 8 .b8 out[24]) f(.param .align 8 .b8 x[24], .param .b64 p, .param .b8 i)
        { REGISTERS
          .local .align 8 .b8 copy[24];
          ld.param.u8 %r1, [i];
          mul.wide.u32 %rd1, %r1, 4;
          mov.u64 %rd2, x; add.u64 %rd2, %rd2, %rd1; ld.param.u32 %r2, [%rd2];
          mov.u64 %rd3, copy; add.u64 %rd3, %rd3, %rd1; st.local.u32 [%rd3], %r2;
          ld.local.u32 %r3, [copy+20];
          ld.param.b64 %rd4, [p]; st.u32 [%rd4], %r3;
          cvta.local.u64 %rd5, copy; ld.v2.u32 {%r4, %r5}, [%rd5];
          st.param.v2.b32 [out+8], {%r4, %r5}; ret; }";
    let body = "
        .local .align 4 .b8 mine[8];
        mov.u64 %rd5, mine; cvta.local.u64 %rd5, %rd5; add.u64 %rd5, %rd5, 4;
        { .param .align 8 .b8 x[24]; .param .b64 p; .param .b8 i; .param .align 8 .b8 out[24];
          add.u32 %r3, %r1, 1000; add.u32 %r4, %r1, 2000;
          st.param.v2.b32 [x], {%r3, %r4}; st.param.b64 [x+8], 0; st.param.b32 [x+20], %r1;
          st.param.b64 [p], %rd5; and.b32 %r5, %r1, 1; st.param.b8 [i], %r5;
          call (out), f, (x, p, i);
          ld.param.v2.b32 {%r6, %r7}, [out+8]; }
        ld.local.u32 %r8, [mine+4];
        add.u32 %r6, %r6, %r7; add.u32 %r6, %r6, %r8; st.global.u32 [%rd4], %r6;";
    assert_eq!(results(structs, body), numbers(|x| x + if x % 2 == 0 { 1000 } else { 2000 }));
}

const FIBONACCI: &str = ".func (.param .b32 out) f(.param .b32 n)
    { REGISTERS
      ld.param.u32 %r1, [n]; mov.u32 %r2, %r1;
      setp.lt.u32 %p1, %r1, 2;
      @%p1 bra.uni LEAVE;
      { .param .b32 x; .param .b32 y;
        sub.u32 %r3, %r1, 1; st.param.b32 [x], %r3;
        call (y), f, (x); ld.param.b32 %r2, [y]; }
      { .param .b32 x; .param .b32 y;
        sub.u32 %r3, %r1, 2; st.param.b32 [x], %r3;
        call (y), f, (x); ld.param.b32 %r4, [y]; }
      add.u32 %r2, %r2, %r4;
      LEAVE: st.param.b32 [out], %r2; ret; }";

fn fibonacci(n: u32) -> u32 {
    if n < 2 { n } else { fibonacci(n - 1) + fibonacci(n - 2) }
}

#[test]
fn every_lane_calls_as_often_as_it_needs() {
    let body = CALL.replace("[argument+0], %r1", "[argument+0], %r5");
    let body = format!("rem.u32 %r5, %r1, 11; {body}");
    assert_eq!(results(FIBONACCI, &body), numbers(|lane| fibonacci(lane % 11)));

    // Two that call each other, each with a variable that the other writes to.
    let two = ".func (.param .b32 out) g(.param .b32 n, .param .b64 sum);
        .func (.param .b32 out) f(.param .b32 n, .param .b64 sum)
        { REGISTERS
          .local .align 4 .b32 own; .param .b32 x; .param .b64 p; .param .b32 y;
          ld.param.u32 %r1, [n]; ld.param.u64 %rd1, [sum];
          st.local.u32 [own], 0;
          setp.eq.u32 %p1, %r1, 0; @%p1 bra LEAVE;
          sub.u32 %r2, %r1, 1; st.param.b32 [x], %r2;
          cvta.local.u64 %rd2, own; st.param.b64 [p], %rd2;
          call (y), g, (x, p);
          LEAVE:
          ld.local.u32 %r3, [own]; add.u32 %r3, %r3, %r1; st.u32 [%rd1], %r3;
          st.param.b32 [out], %r1; ret; }
        .func (.param .b32 out) g(.param .b32 n, .param .b64 sum)
        { REGISTERS .param .b32 x; .param .b64 p; .param .b32 y;
          ld.param.u32 %r1, [n]; ld.param.u64 %rd1, [sum];
          st.param.b32 [x], %r1; st.param.b64 [p], %rd1;
          call (y), f, (x, p); ld.param.b32 %r2, [y]; st.param.b32 [out], %r2; }";
    let body = ".local .align 4 .b32 total; .param .b32 x; .param .b64 p; .param .b32 y;
        cvta.local.u64 %rd5, total; st.param.b32 [x], %r1; st.param.b64 [p], %rd5;
        call (y), f, (x, p); ld.local.u32 %r2, [total]; st.global.u32 [%rd4], %r2;";
    assert_eq!(results(two, body), numbers(|lane| lane * (lane + 1) / 2));
}

/// Three functions, of which one is not like the others, and their addresses.
const TABLE: &str = ".func (.param .b32 out) twice(.param .b32 x)
    { REGISTERS ld.param.u32 %r1, [x]; shl.b32 %r1, %r1, 1; st.param.b32 [out], %r1; ret; }
    .func (.param .b32 out) thrice(.param .b32 x)
    { REGISTERS ld.param.u32 %r1, [x]; mul.lo.u32 %r1, %r1, 3; st.param.b32 [out], %r1; ret; }
    .func other(.param .b64 x) { ret; }
    .func refused(.param .b32 x) { foo; ret; }
    .global .u64 table[4] = {twice, thrice, other, refused};";

/// Calls the function of the table whose number is in `%r5`.
const THROUGH: &str = "mul.wide.u32 %rd5, %r5, 8; mov.u64 %rd6, table; add.u64 %rd6, %rd6, %rd5;
    ld.global.u64 %rd7, [%rd6];
    { .param .b32 x; .param .b32 y; st.param.b32 [x], %r1;
      prototype: .callprototype (.param .b32 _) _ (.param .b32 _);
      call (y), %rd7, (x), prototype;
      ld.param.b32 %r2, [y]; }
    activemask.b32 %r3; not.b32 %r3, %r3; add.u32 %r2, %r2, %r3; st.global.u32 [%rd4], %r2;";

#[test]
fn functions_are_called_through_pointers() {
    let body = format!("and.b32 %r5, %r1, 1; {THROUGH}");
    assert_eq!(results(TABLE, &body), numbers(|lane| lane * (2 + lane % 2)), "and all lanes meet");
    let address = format!("mov.u32 %r5, 0; {THROUGH}");
    let address = address.replace("ld.global.u64 %rd7, [%rd6];", "mov.u64 %rd7, thrice;");
    assert_eq!(results(TABLE, &address), numbers(|lane| 3 * lane));

    for (number, message) in [
        ("2", "calls `other` through a pointer, and wants 1 results, and it gives 0"),
        (
            "3",
            "calls a function through a pointer that the emulator does not execute, at address 0x1000000030",
        ),
    ] {
        let bench = Bench::of(&source(TABLE, &format!("mov.u32 %r5, {number};\n{THROUGH}")));
        bench.reports(bench.run(), ReportKind::Call, "call (y)", message);
    }
    let bench = Bench::of(&source(TABLE, "setp.gt.u32 %p1, %r1, 3;\n@%p1 call %rd1;"));
    let message = "calls what is no function, at address 0x10000000000";
    let report = bench.reports(bench.run(), ReportKind::Call, "call %rd1", message);
    assert_eq!(report.lanes, !0xf);
}

#[test]
fn lanes_meet_where_functions_return() {
    // Some lanes call, and return at different places; all shuffle in a function after it, and in
    // another one.
    let functions = ".func (.param .b32 out) f(.param .b32 x)
        { REGISTERS ld.param.u32 %r1, [x]; setp.lt.u32 %p1, %r1, 8; st.param.b32 [out], 1; @%p1 ret;
          setp.lt.u32 %p1, %r1, 16; st.param.b32 [out], 2; @%p1 ret; st.param.b32 [out], 3; ret; }
        .func (.param .b32 out) neighbour(.param .b32 x)
        { REGISTERS ld.param.u32 %r1, [x]; shfl.sync.bfly.b32 %r2, %r1, 1, 31, -1; st.param.b32 [out], %r2;
          setp.gt.u32 %p1, %r1, 1; @%p1 bra B; ret; B: ret; }";
    let body = "mov.u32 %r2, 9; setp.gt.u32 %p2, %r1, 3;
        @!%p2 bra JOIN;
        { .param .b32 x; .param .b32 y; st.param.b32 [x], %r1; call (y), f, (x); ld.param.b32 %r2, [y]; }
        JOIN:
        activemask.b32 %r3;
        { .param .b32 x; .param .b32 y; st.param.b32 [x], %r2; call (y), neighbour, (x); ld.param.b32 %r2, [y]; }
        activemask.b32 %r4; and.b32 %r3, %r3, %r4; not.b32 %r3, %r3; add.u32 %r2, %r2, %r3;
        st.global.u32 [%rd4], %r2;";
    let value = |lane: u32| match lane {
        0..4 => 9,
        4..8 => 1,
        8..16 => 2,
        _ => 3,
    };
    assert_eq!(results(functions, body), numbers(|lane| value(lane ^ 1)));
    // A thread that exits in a function is gone.
    let leaves =
        ".func f() { REGISTERS mov.u32 %r1, %laneid; setp.gt.u32 %p1, %r1, 3; @%p1 exit; ret; }";
    let bench =
        Bench::of(&source(leaves, "st.global.u32 [%rd4], 1; call f; st.global.u32 [%rd4], 2;"));
    bench.run().unwrap();
    assert_eq!(bench.words(), numbers(|lane| if lane > 3 { 1 } else { 2 }));
}

#[test]
fn functions_share_the_memory_of_the_block() {
    let functions = ".shared .align 4 .b8 tile[512]; .extern .shared .align 16 .b8 dynamic[]; .shared .b32 unused;
        .func put(.param .b32 x) { REGISTERS .shared .align 8 .b8 other[256];
          ld.param.u32 %r1, [x]; mov.u32 %r2, %tid.x; mul.wide.u32 %rd1, %r2, 4;
          mov.u64 %rd2, tile; add.u64 %rd2, %rd2, %rd1; st.shared.u32 [%rd2], %r1;
          mov.u64 %rd2, dynamic; add.u64 %rd2, %rd2, %rd1; st.shared.u32 [%rd2], 7;
          setp.eq.u32 %p1, %r2, 0; @%p1 st.shared.u32 [other+4], 5;
          bar.sync 0;
          ld.shared.u32 %r4, [other+4]; setp.ne.u32 %p1, %r4, 5; @%p1 trap; ret; }";
    let body = ".shared .b32 mine; .param .b32 x; st.param.b32 [x], %r1; call put, (x);
        setp.eq.u32 %p1, %r1, 0; @%p1 st.shared.u32 [mine], 1;
        mov.u32 %r5, tile; xor.b32 %r6, %r1, 33; mad.lo.u32 %r5, %r6, 4, %r5; ld.shared.u32 %r2, [%r5];
        mov.u32 %r5, dynamic; mad.lo.u32 %r5, %r6, 4, %r5; ld.shared.u32 %r3, [%r5];
        add.u32 %r2, %r2, %r3; st.global.u32 [%rd4], %r2;";
    let mut bench = Bench::of(&source(functions, body)).threads(64);
    bench.dynamic_shared = 256;
    assert_eq!(bench.kernel().shared_bytes(), 4 + 512 + 4 + 256, "`mine`, `tile`, a gap, `other`");
    bench.run().unwrap_or_else(|report| panic!("{report}"));
    assert_eq!(bench.words(), std::array::from_fn::<u32, 64, _>(|x| (x as u32 ^ 33) + 7));
}

#[test]
fn calls_keep_to_the_bounds() {
    let endless = ".func f(.param .b32 x) { .local .b8 l[1000]; .param .b32 y; st.param.b32 [y], 1;\ncall f, (y); ret; }";
    let bench = Bench::of(&source(endless, ".param .b32 x; call f, (x);"));
    let message = "calls `f` with more than 524288 bytes of the thread's local memory: calls are nested too deep";
    bench.reports(bench.run(), ReportKind::Call, "call f, (y)", message);
    let endless = ".func f() {\ncall f; ret; }";
    let bench = Bench::of(&source(endless, "call f;"));
    bench.reports(bench.run(), ReportKind::Call, "call f", message);
    let mut bench = Bench::of(&source(endless, "call f;"));
    bench.host_bytes = 1 << 20;
    let report = bench.run().unwrap_err();
    assert_eq!(report.kind, ReportKind::HostBytes, "{report}");
    let mut bench = Bench::of(&source(endless, "call f;"));
    bench.instructions = 1000;
    assert_eq!(bench.run().unwrap_err().kind, ReportKind::Instructions);
}

#[test]
fn what_calls_have_allocated_is_given_back() {
    let body = CALL.replace("[argument+0], %r1", "[argument+0], 12");
    let body = body.replace("st.global.u32 [%rd4], %r2;", "");
    let mut bench = Bench::of(&source(FIBONACCI, &body)).blocks(8);
    bench.host_bytes = 1 << 18;
    for _ in 0..3 {
        bench.run().unwrap_or_else(|report| panic!("{report}"));
    }
}

#[test]
fn a_stepper_goes_through_calls() {
    let body = CALL.replace("[argument+0], %r1", "[argument+0], %r5");
    let text = source(FIBONACCI, &format!("and.b32 %r5, %r1, 7; {body}"));
    let module = Module::parse_named(&text).and_then(Module::complete).unwrap();
    let memory = Memory::new(1 << 20);
    let (a, b) = (memory.allocate("a", BYTES).unwrap(), memory.allocate("b", BYTES).unwrap());
    let arguments = [a.to_le_bytes(), b.to_le_bytes()].concat();
    let launch = Launch::new(module.kernel("k").unwrap(), [1; 3], [32, 1, 1], &arguments);
    let mut stepper = Stepper::new(launch, memory, false).unwrap();
    let counters = stepper.result().clone().unwrap();
    assert_eq!(counters.instructions, stepper.len() as u64);
    for position in [stepper.len() / 2, 1, stepper.len() - 1, stepper.len()] {
        stepper.seek(position);
        let pc = stepper.steps().get(position).map(|step| step.pc);
        let here = stepper.warps().iter().any(|warp| warp.paths.iter().any(|p| Some(p.pc) == pc));
        assert!(here || pc.is_none());
    }
    assert_eq!(stepper.counters(), counters);
    let mut last = [0; 4];
    stepper.memory().read(b + 4 * 31, &mut last).unwrap();
    assert_eq!(u32::from_le_bytes(last), fibonacci(7));
}

/// Functions, a call, and what is said of the kernel that has it.
const REFUSED: [(&str, &str, u32, &str); 9] = [
    (
        ".extern .func f();",
        "call f;",
        10,
        "the function `f` is declared, and not defined in the module",
    ),
    (
        ".extern .func (.param .b64 r) malloc(.param .b64 n);",
        "call (%rd5), malloc, (%rd5);",
        10,
        "`malloc` in a kernel is not supported: there is no heap",
    ),
    (
        ".func f() { foo; }",
        "call f;",
        4,
        "in the function `f`, which is called: `foo;`: `foo` is not",
    ),
    (".func g() { foo; } .func f() { call g; }", "call f;", 4, "in the function `g`"),
    (".func f(.param .v4 .b32 x) { ret; }", "call f;", 4, "in the function `f`, which is called"),
    (
        ".func f() { ret; }",
        "call f, (%r1);",
        10,
        "the call of `f` hands over 1 arguments, and it takes 0",
    ),
    (".func f() { ret; }", "call (%r1), f;", 10, "the call of `f` wants 1 results, and it gives 0"),
    (
        ".func f(.param .b64 x) { ret; }",
        "call f, (%r1);",
        10,
        "the call of `f` hands over 4 bytes where it has 8",
    ),
    (
        ".func f() { .shared .b8 x[40000]; st.shared.u8 [x], 1; }",
        ".shared .b8 y[9999]; st.shared.u8 [y], 1; call f;",
        8,
        "with `x` the variables of this space take more than 49152 bytes",
    ),
];

#[test]
fn a_function_that_is_refused_refuses_who_calls_it() {
    for (functions, call, line, sentence) in REFUSED {
        let text = source(functions, &format!("\n{call}")) + "\n.entry other() { ret; }";
        let module = Module::parse(&text).unwrap_or_else(|error| panic!("{error}"));
        assert!(module.kernel("other").is_some());
        let refusal = module.refusal("k").unwrap_or_else(|| panic!("accepted: {functions}"));
        assert!(refusal.message.contains(sentence), "{refusal}, not: {sentence}");
        let lines: Vec<&str> = text.lines().collect();
        let wanted = if line == 10 {
            lines.iter().position(|l| *l == call).unwrap() as u32 + 1
        } else {
            line
        };
        assert_eq!(refusal.line, wanted, "{refusal}");
    }
}
