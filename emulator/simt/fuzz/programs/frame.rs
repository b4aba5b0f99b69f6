//! The kernel around the statements. It gives every register and every place in memory a value, and
//! writes all of them to the results after the statements have run.

use super::forms::canonical;
use super::{REGISTERS, Writing};

/// The number of threads in a block.
pub const THREADS: usize = 64;
/// The number of blocks in a launch.
pub const BLOCKS: usize = 2;
/// The number of 32-bit words that each thread reads.
pub const INPUT_WORDS: usize = 112;
/// The number of 32-bit words that each thread writes.
const THREAD_WORDS: usize = 112;
/// The number of 32-bit words that a program writes. Each thread has one more, which others read.
pub const WORDS: usize = BLOCKS * THREADS * (THREAD_WORDS + 1);

/// The offsets in a thread's inputs and results, in words: 8 words for `%r`, 16 for `%rd`, …, and
/// 16 for its own 64 bytes in each memory space.
const R: usize = 0;
const RD: usize = 8;
const F: usize = 24;
const FD: usize = 32;
const RS: usize = 48;
const P: usize = 56;
const GLOBAL: usize = 64;
const SHARED: usize = 80;
const LOCAL: usize = 96;

/// The registers of a vector that moves between memory spaces.
const FOUR: &str = "{%w, %x, %y, %v}";

pub(super) const HEAD: &str = ".version 8.0
.target sm_90
.address_size 64
.const .align 16 .b32 fixed[16] = {0, 1, -1, 7, 0x80000000, 0x7fffffff, 0x3f800000, 0x7fc00000, 255, 65536, 31, 32, 33, 0x12345678, 0xdeadbeef, 2};
.global .align 16 .b32 table[16] = {3, 0xffffffff, 1, 0, 0x40490fdb, 0x80000001, 64, 0x00010001, 9, 100, 0x3c003c00, 0xbf800000, 5, 0xcafe, 8, 0x7f7fffff};

.func (.param .b32 out) mix(.param .b32 a, .param .b64 b)
{
.reg .b32 %a<6>; .reg .b64 %b<4>;
ld.param.b32 %a1, [a];
ld.param.b64 %b1, [b];
cvt.u32.u64 %a2, %b1;
shr.u64 %b2, %b1, 29;
cvt.u32.u64 %a3, %b2;
mad.lo.u32 %a4, %a1, %a2, %a3;
lop3.b32 %a5, %a4, %a1, %a2, 0x96;
st.param.b32 [out], %a5;
ret;
}

.func (.param .b32 out) fold(.param .b32 a, .param .b64 b)
{
.reg .b32 %a<6>; .reg .b64 %b<4>; .reg .pred %c<2>;
.local .align 8 .b8 kept[16];
ld.param.b32 %a1, [a];
ld.param.b64 %b1, [b];
mov.u64 %b2, kept;
st.local.b64 [%b2], %b1;
st.local.b32 [%b2+8], %a1;
and.b32 %a2, %a1, 8;
cvt.u64.u32 %b3, %a2;
add.s64 %b2, %b2, %b3;
ld.local.b32 %a3, [%b2];
setp.lt.s32 %c1, %a3, 0;
@%c1 bra NEGATIVE;
mul.hi.u32 %a4, %a3, 0x9e3779b9;
bra DONE;
NEGATIVE:
neg.s32 %a4, %a3;
DONE:
st.param.b32 [out], %a4;
ret;
}

.func (.param .b32 out) count(.param .b32 a, .param .b64 b)
{
.reg .b32 %a<6>; .reg .b64 %b<4>; .reg .pred %c<2>;
.param .b32 given; .param .b64 wide; .param .b32 got;
ld.param.b32 %a1, [a];
ld.param.b64 %b1, [b];
and.b32 %a2, %a1, 7;
mov.u32 %a3, 0;
ROUND:
st.param.b32 [given], %a3;
st.param.b64 [wide], %b1;
call (got), mix, (given, wide);
ld.param.b32 %a4, [got];
add.u32 %a3, %a3, %a4;
sub.u32 %a2, %a2, 1;
setp.gt.s32 %c1, %a2, 0;
@%c1 bra ROUND;
st.param.b32 [out], %a3;
ret;
}
";

pub(super) fn kernel(name: &str, statements: &str, writing: Writing) -> String {
    let mut text = format!(
        "
.visible .entry {name}(.param .u64 p0, .param .u64 p1, .param .align 16 .b8 p2[16])
{{
.shared .align 16 .b8 own[{}];
.shared .align 16 .b8 board[{}];
.local .align 16 .b8 mine[64];
.reg .pred %p<16>; .reg .b16 %rs<16>; .reg .b32 %r<16>; .reg .b64 %rd<16>; .reg .f32 %f<16>; .reg .f64 %fd<16>;
.reg .pred %z; .reg .b32 %w, %x, %y, %v, %tx, %n<4>; .reg .f32 %zf; .reg .f64 %zfd;
.reg .b64 %wd, %ri, %ro, %og, %os, %ol, %gs, %gl, %bs, %bg, %ms, %mg, %tc, %tg;
ld.param.u64 %ri, [p0];
ld.param.u64 %ro, [p1];
mov.u32 %tx, %tid.x;
mov.u32 %x, %ctaid.x;
mad.lo.u32 %w, %x, {THREADS}, %tx;
mul.wide.u32 %wd, %x, {};
add.s64 %bg, %ro, %wd;
add.s64 %bg, %bg, {};
mul.wide.u32 %wd, %tx, 4;
add.s64 %mg, %bg, %wd;
mov.u64 %bs, board;
add.s64 %ms, %bs, %wd;
mul.wide.u32 %wd, %w, {};
add.s64 %ri, %ri, %wd;
mul.wide.u32 %wd, %w, {};
add.s64 %ro, %ro, %wd;
add.s64 %og, %ro, {};
mov.u64 %os, own;
mul.wide.u32 %wd, %tx, 64;
add.s64 %os, %os, %wd;
cvta.shared.u64 %gs, %os;
mov.u64 %ol, mine;
cvta.local.u64 %gl, %ol;
mov.u64 %tc, fixed;
mov.u64 %tg, table;
",
        64 * THREADS,
        4 * THREADS + 16,
        4 * THREADS,
        4 * BLOCKS * THREADS * THREAD_WORDS,
        4 * INPUT_WORDS,
        4 * THREAD_WORDS,
        4 * GLOBAL,
    );
    let mut line = |line: String| {
        text += &line;
        text.push('\n');
    };
    for i in 0..REGISTERS {
        let n = (i + writing.turned) % REGISTERS;
        line(format!("ld.global.b32 %r{n}, [%ri+{}];", 4 * (R + i)));
        line(format!("ld.global.b64 %rd{n}, [%ri+{}];", 4 * (RD + 2 * i)));
        line(format!("ld.global.f32 %f{n}, [%ri+{}];", 4 * (F + i)));
        line(format!("ld.global.f64 %fd{n}, [%ri+{}];", 4 * (FD + 2 * i)));
        line(format!("ld.global.b16 %rs{n}, [%ri+{}];", 4 * RS + 2 * i));
        line(format!("ld.global.b32 %w, [%ri+{}];", 4 * (P + i)));
        line(format!("setp.lt.s32 %p{n}, %w, 0;"));
    }
    if writing.with_dead_code {
        for n in REGISTERS..2 * REGISTERS {
            line(format!("mov.u32 %r{n}, %tx;"));
            line(format!("mov.u64 %rd{n}, {n};"));
            line(format!("mov.f32 %f{n}, 0f3F800000;"));
            line(format!("mov.f64 %fd{n}, 0d3FF0000000000000;"));
            line(format!("mov.u16 %rs{n}, {n};"));
            line(format!("setp.lt.u32 %p{n}, %tx, {n};"));
        }
    }
    let spaces = [(GLOBAL, "global", "%og"), (SHARED, "shared", "%os"), (LOCAL, "local", "%ol")];
    for (place, space, own) in spaces {
        for i in (0..16).step_by(4) {
            line(format!("ld.global.v4.b32 {FOUR}, [%ri+{}];", 4 * (place + i)));
            line(format!("st.{space}.v4.b32 [{own}+{}], {FOUR};", 4 * i));
        }
    }
    line(
        "mov.u32 %w, 0;\nst.shared.b32 [%ms], %w;\nst.global.b32 [%mg], %w;\nbar.sync 0;"
            .to_string(),
    );

    line(statements.to_string());

    for i in 0..REGISTERS {
        let n = (i + writing.turned) % REGISTERS;
        line(format!("st.global.b32 [%ro+{}], %r{n};", 4 * (R + i)));
        line(format!("st.global.b64 [%ro+{}], %rd{n};", 4 * (RD + 2 * i)));
        for (register, place, ty) in [("%f", F + i, "f32"), ("%fd", FD + 2 * i, "f64")] {
            let register = format!("{register}{n}");
            canonical(&register).into_iter().for_each(&mut line);
            line(format!("st.global.{ty} [%ro+{}], {register};", 4 * place));
        }
        line(format!("cvt.u32.u16 %w, %rs{n};"));
        line(format!("st.global.b32 [%ro+{}], %w;", 4 * (RS + i)));
        line(format!("selp.b32 %w, 1, 0, %p{n};"));
        line(format!("st.global.b32 [%ro+{}], %w;", 4 * (P + i)));
    }
    for (place, space, own) in &spaces[1..] {
        for i in (0..16).step_by(4) {
            line(format!("ld.{space}.v4.b32 {FOUR}, [{own}+{}];", 4 * i));
            line(format!("st.global.v4.b32 [%ro+{}], {FOUR};", 4 * (place + i)));
        }
    }
    line("ret;\n}".to_string());
    text
}

/// Returns what a word of the results holds: `%r3 of thread 5 of block 0`.
pub fn word_name(word: usize) -> String {
    let (thread, of_thread) = (word / THREAD_WORDS, word % THREAD_WORDS);
    if thread >= BLOCKS * THREADS {
        let word = word - BLOCKS * THREADS * THREAD_WORDS;
        return format!("word {} of the global board of block {}", word % THREADS, word / THREADS);
    }
    let what = match of_thread {
        RD..F => format!("%rd{}, half {}", (of_thread - RD) / 2, (of_thread - RD) % 2),
        F..FD => format!("%f{}", of_thread - F),
        FD..RS => format!("%fd{}, half {}", (of_thread - FD) / 2, (of_thread - FD) % 2),
        RS..P => format!("%rs{}", of_thread - RS),
        P..GLOBAL => format!("%p{}", of_thread - P),
        GLOBAL..SHARED => {
            format!("byte {} of the thread in global memory", 4 * (of_thread - GLOBAL))
        }
        SHARED..LOCAL => {
            format!("byte {} of the thread in shared memory", 4 * (of_thread - SHARED))
        }
        LOCAL.. => format!("byte {} of the thread in local memory", 4 * (of_thread - LOCAL)),
        _ => format!("%r{}", of_thread - R),
    };
    format!("{what} of thread {} of block {}", thread % THREADS, thread / THREADS)
}
