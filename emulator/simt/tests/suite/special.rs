//! Special registers, in blocks and grids of three dimensions.

use simt::{Launch, Memory};

use crate::kernel::{HEAD, module};

#[derive(Default)]
struct Thread {
    index: [u32; 3],
    block_index: [u32; 3],
    number: u32,
    threads: u32,
}

const BLOCK: [u32; 3] = [5, 3, 4];
const GRID: [u32; 3] = [3, 2, 2];
const DYNAMIC: u32 = 48;

/// The registers, with their values in a thread.
fn registers(t: &Thread) -> Vec<(String, u32)> {
    let lane = t.number % 32;
    let axes = [("tid", t.index), ("ntid", BLOCK), ("ctaid", t.block_index), ("nctaid", GRID)];
    let axes = axes.into_iter().flat_map(|(name, values)| {
        ["x", "y", "z"]
            .into_iter()
            .zip(values)
            .map(move |(x, value)| (format!("%{name}.{x}"), value))
    });
    let others = [
        ("%laneid", lane),
        ("%warpid", t.number / 32),
        ("%nwarpid", t.threads.div_ceil(32)),
        ("WARP_SZ", 32),
        ("%lanemask_eq", 1 << lane),
        ("%lanemask_lt", (1 << lane) - 1),
        ("%lanemask_le", u32::MAX >> (31 - lane)),
        ("%lanemask_gt", (u32::MAX - 1) << lane),
        ("%lanemask_ge", u32::MAX << lane),
        ("%dynamic_smem_size", DYNAMIC),
        ("%total_smem_size", 16 + DYNAMIC),
        ("%reserved_smem_offset_begin", 16 + DYNAMIC + 1024),
        ("%reserved_smem_offset_0", 16 + DYNAMIC + 1024),
        ("%reserved_smem_offset_1", 16 + DYNAMIC + 1024 + 512),
        ("%reserved_smem_offset_end", 16 + DYNAMIC + 2048),
        ("%reserved_smem_offset_cap", 1024),
        ("%smid", 0),
        ("%nsmid", 1),
        ("%envreg0", 0),
        ("%envreg9", 0),
        ("%envreg31", 0),
    ];
    axes.chain(others.map(|(name, value)| (name.to_string(), value))).collect()
}

#[test]
fn special_registers_in_three_dimensions() {
    let threads: u32 = BLOCK.iter().product();
    let blocks: u32 = GRID.iter().product();
    let registers_of = registers(&Thread::default());
    let rows = registers_of.len();
    let store = |(i, (name, _)): (usize, &(String, u32))| {
        format!("mov.u32 %r9, {name};\nst.global.u32 [%rd1+{}], %r9;\n", 4 * i)
    };
    let stores: String = registers_of.iter().enumerate().map(store).collect();
    // A thread's place: its number in the block, plus the threads of the blocks before.
    let source = format!(
        "{HEAD}
        .visible .entry k(.param .u64 a)
        {{
            .reg .b32 %r<10>;
            .reg .b64 %rd<4>;
            .shared .align 16 .b8 s[16];
            .extern .shared .align 16 .b8 more[];
            ld.param.u64 %rd1, [a];
            // A variable that is not used takes no memory.
            mov.u32 %r1, s;
            mov.u32 %r1, %tid.z;
            mov.u32 %r3, %tid.y;
            mad.lo.u32 %r1, %r1, {y}, %r3;
            mov.u32 %r3, %tid.x;
            mad.lo.u32 %r1, %r1, {x}, %r3;
            mov.u32 %r2, %ctaid.z;
            mov.u32 %r3, %ctaid.y;
            mad.lo.u32 %r2, %r2, {v}, %r3;
            mov.u32 %r3, %ctaid.x;
            mad.lo.u32 %r2, %r2, {u}, %r3;
            mad.lo.u32 %r1, %r2, {threads}, %r1;
            mul.wide.u32 %rd2, %r1, {bytes};
            add.u64 %rd1, %rd1, %rd2;
            {stores}
        }}
        ",
        x = BLOCK[0],
        y = BLOCK[1],
        u = GRID[0],
        v = GRID[1],
        bytes = 4 * rows
    );
    let module = module(&source);
    let memory = Memory::new(1 << 24);
    let count = (threads * blocks) as usize * rows;
    let a = memory.allocate("values", 4 * count as u64).unwrap();
    let arguments = a.to_le_bytes();
    let kernel = module.kernel("k").unwrap();
    let launch = Launch { dynamic_shared: DYNAMIC, ..Launch::new(kernel, GRID, BLOCK, &arguments) };
    launch.prepare(&memory).unwrap().run(0..blocks.into()).unwrap();

    let mut bytes = vec![0; 4 * count];
    memory.read(a, &mut bytes).unwrap();
    let mut values = bytes.chunks_exact(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]));
    for block in 0..blocks {
        for number in 0..threads {
            let index =
                |number: u32, [x, y, _]: [u32; 3]| [number % x, number / x % y, number / x / y];
            let (index, block_index) = (index(number, BLOCK), index(block, GRID));
            let thread = Thread { index, block_index, number, threads };
            for (name, wanted) in registers(&thread) {
                let got = values.next().unwrap();
                assert_eq!(got, wanted, "{name} of thread {number} of block {block}");
            }
        }
    }
    println!("special registers: {} forms", rows);
}
