//! Small kernels, written in PTX.

/// `values[i] *= factor` for `i < len`: `float* values, float factor, unsigned len`.
pub const SCALE: &str = "
.version 8.0
.target sm_80
.address_size 64
.visible .entry scale(.param .u64 values, .param .f32 factor, .param .u32 len)
{
    .reg .pred %p<2>; .reg .b32 %r<6>; .reg .f32 %f<4>; .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [values];
    ld.param.f32 %f1, [factor];
    ld.param.u32 %r1, [len];
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ntid.x;
    mov.u32 %r4, %tid.x;
    mad.lo.s32 %r5, %r2, %r3, %r4;
    setp.ge.u32 %p1, %r5, %r1;
    @%p1 bra DONE;
    cvta.to.global.u64 %rd2, %rd1;
    mad.wide.u32 %rd3, %r5, 4, %rd2;
    ld.global.f32 %f2, [%rd3];
    mul.rn.f32 %f3, %f2, %f1;
    st.global.f32 [%rd3], %f3;
DONE:
    ret;
}";

/// Every block writes its number to `found[number]` through the last word of `bytes` bytes of
/// dynamic shared memory: `unsigned* found, unsigned bytes`.
pub const THROUGH_SHARED: &str = "
.version 8.0
.target sm_80
.address_size 64
.extern .shared .align 16 .b8 room[];
.visible .entry through_shared(.param .u64 found, .param .u32 bytes)
{
    .reg .b32 %r<6>; .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [found];
    ld.param.u32 %r1, [bytes];
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, room;
    add.s32 %r4, %r3, %r1;
    st.shared.u32 [%r4+-4], %r2;
    bar.sync 0;
    ld.shared.u32 %r5, [%r4+-4];
    cvta.to.global.u64 %rd2, %rd1;
    mad.wide.u32 %rd3, %r2, 4, %rd2;
    st.global.u32 [%rd3], %r5;
    ret;
}";

/// Writes its arguments: `unsigned char* out, bool, short, float, double, unsigned long long*`. If
/// the last is not null, it also writes 1 there.
pub const ECHO: &str = "
.version 8.0
.target sm_80
.address_size 64
.visible .entry echo(.param .u64 out, .param .u8 flag, .param .u16 small, .param .f32 single,
    .param .f64 double, .param .align 8 .b8 pair[16], .param .u64 maybe)
{
    .reg .pred %p<2>; .reg .b16 %rs<3>; .reg .f32 %f<2>; .reg .f64 %fd<4>; .reg .b64 %rd<5>;
    ld.param.u64 %rd1, [out];
    cvta.to.global.u64 %rd2, %rd1;
    ld.param.u8 %rs1, [flag];
    st.global.u8 [%rd2], %rs1;
    ld.param.u16 %rs2, [small];
    st.global.u16 [%rd2+2], %rs2;
    ld.param.f32 %f1, [single];
    st.global.f32 [%rd2+4], %f1;
    ld.param.f64 %fd1, [double];
    st.global.f64 [%rd2+8], %fd1;
    ld.param.f64 %fd2, [pair];
    ld.param.f64 %fd3, [pair+8];
    st.global.f64 [%rd2+16], %fd2;
    st.global.f64 [%rd2+24], %fd3;
    ld.param.u64 %rd3, [maybe];
    setp.eq.s64 %p1, %rd3, 0;
    @%p1 bra DONE;
    cvta.to.global.u64 %rd3, %rd3;
    mov.u64 %rd4, 1;
    st.global.u64 [%rd3], %rd4;
DONE:
    ret;
}";

/// Every block writes `1000 * round + number` to `numbers[number]`, waits until all blocks have,
/// and writes what the next block wrote to `found[number]`, where the last block's next is the
/// first; then it waits for all once more. It waits by atomic operations alone, which do not show
/// that it waits. `arrived` is 0 before the first launch, and counts on with the next:
/// `unsigned *arrived, *numbers, *found, unsigned round`.
pub const NEXT_BLOCK: &str = "
.version 8.0
.target sm_80
.address_size 64
.extern .shared .align 16 .b8 room[];
.visible .entry next_block(.param .u64 arrived, .param .u64 numbers, .param .u64 found, .param .u32 round)
{
    .reg .pred %p<3>; .reg .b32 %r<16>; .reg .b64 %rd<8>;
    ld.param.u64 %rd1, [arrived];
    ld.param.u64 %rd2, [numbers];
    ld.param.u64 %rd3, [found];
    ld.param.u32 %r1, [round];
    cvta.to.global.u64 %rd1, %rd1;
    cvta.to.global.u64 %rd2, %rd2;
    cvta.to.global.u64 %rd3, %rd3;
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %nctaid.x;
    mov.u32 %r4, %tid.x;
    setp.ne.u32 %p1, %r4, 0;
    @%p1 bra DONE;

    mad.lo.u32 %r5, %r1, 1000, %r2;
    mul.wide.u32 %rd4, %r2, 4;
    add.s64 %rd5, %rd2, %rd4;
    st.global.u32 [%rd5], %r5;

    atom.acq_rel.gpu.global.add.u32 %r6, [%rd1], 1;
    div.u32 %r7, %r6, %r3;
    mad.lo.u32 %r8, %r7, %r3, %r3;
FIRST:
    atom.acq_rel.gpu.global.add.u32 %r9, [%rd1], 0;
    setp.lt.u32 %p2, %r9, %r8;
    @%p2 bra FIRST;

    add.u32 %r10, %r2, 1;
    rem.u32 %r10, %r10, %r3;
    mul.wide.u32 %rd6, %r10, 4;
    add.s64 %rd6, %rd2, %rd6;
    ld.global.u32 %r11, [%rd6];
    add.s64 %rd7, %rd3, %rd4;
    st.global.u32 [%rd7], %r11;

    atom.acq_rel.gpu.global.add.u32 %r12, [%rd1], 1;
    add.u32 %r8, %r8, %r3;
SECOND:
    atom.acq_rel.gpu.global.add.u32 %r13, [%rd1], 0;
    setp.lt.u32 %p2, %r13, %r8;
    @%p2 bra SECOND;
DONE:
    ret;
}";
