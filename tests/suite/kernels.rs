//! Tests of the catalogue: the shipped PTX matches the sources, and does what their comments say.

use std::collections::HashSet;

use crate::emulator::{Argument, Shipped, allocate, download, upload};
use linrec::device::nvrtc::{self, Nvrtc};
use linrec::kernels::{self, ElementType, KernelChoice, Program, Ptx};
use linrec::simt::{Access, Memory, Module};

/// Returns the program from which a shipped PTX was made, by its first line.
fn program_of(name: &str, ptx: &Ptx) -> Program {
    let made = ptx.text().lines().next().unwrap_or_default();
    let file =
        made.strip_prefix("// compiled from kernels/").and_then(|rest| rest.split_once(" by "));
    let (file, _) = file.unwrap_or_else(|| panic!("{name} begins with `{made}`"));
    let program = kernels::program(file).unwrap_or_else(|| panic!("{name}: there is no {file}"));
    program.with_entries(ptx.entries().map(|(entry, _)| entry))
}

#[test]
fn no_shipped_ptx_is_stale() {
    for (name, ptx) in kernels::shipped() {
        let hash = program_of(name, &ptx).hash().to_string();
        assert_eq!(
            ptx.hash(),
            Some(&*hash),
            "kernels/ptx/{name}.ptx is stale: run `cargo xtask ptx`"
        );
    }
}

/// Kernels shipped together are often needed one at a time, where no NVRTC could compile them.
#[test]
fn every_shipped_kernel_is_found_alone() {
    for (name, ptx) in kernels::shipped() {
        let program = program_of(name, &ptx);
        for (entry, _) in ptx.entries() {
            let alone = kernels::shipped_as(&program.clone().with_entries([entry]));
            let alone = alone.unwrap_or_else(|| panic!("{name}: {entry} is not found alone"));
            assert!(alone.symbol(entry).is_some(), "{name}: {entry}");
        }
    }
}

#[test]
fn every_shipped_ptx_runs_in_the_emulator_with_rounding_spelled_out() {
    // The selective scan, and all others.
    let (mut entries, mut bytes) = ([0; 2], [0; 2]);
    for (name, ptx) in kernels::shipped() {
        let module = Module::parse(ptx.text()).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(module.unrounded(), [], "{name}");
        for (entry, symbol) in ptx.entries() {
            let kernel = module.kernel(symbol);
            assert!(kernel.is_some_and(|kernel| kernel.instructions() > 1), "{name}: {entry}");
            assert!(!symbol.starts_with("_Z"), "{name}: {symbol} is no name for a person");
        }
        let is_scan = name.starts_with("selective");
        // Planted mistakes, exercises and steps of the ladder do not count: they are for study.
        if !["broken/", "exercises/", "ladder/", "long/", "fused/"]
            .iter()
            .any(|folder| name.starts_with(folder))
        {
            entries[usize::from(!is_scan)] += ptx.entries().count();
        }
        assert_eq!(module.kernels().count(), ptx.entries().count(), "{name}");
        assert_eq!(module.kernels().count(), ptx.text().matches(".entry").count(), "{name}");
        bytes[usize::from(!is_scan)] += ptx.text().len();
    }
    assert!(entries[0] <= 80 && entries[1] <= 195, "{entries:?} entries");
    assert!(bytes[0] <= 16_000_000 && bytes[1] <= 14_500_000, "{bytes:?} bytes");
}

/// An array indexed at run time cannot be in registers. One such line once cost the wide kernel two
/// thirds of its speed, with every result right.
#[test]
fn no_shipped_kernel_keeps_an_array_in_local_memory() {
    for (name, ptx) in kernels::shipped() {
        let declares = |line: &&str| line.trim_start().starts_with(".local");
        let found: Vec<&str> = ptx.text().lines().filter(declares).collect();
        assert!(found.is_empty(), "{name}: {found:?}");
    }
}

#[test]
fn shipped_ptx_depends_on_no_folder_and_no_new_driver() {
    for (name, ptx) in kernels::shipped() {
        for line in ptx.text().lines().filter(|line| line.starts_with("\t.file")) {
            let file = line.split('"').nth(1).unwrap_or_default();
            let known = file.strip_prefix("kernels/").and_then(kernels::source);
            assert!(known.is_some(), "{name} names {file}, which is not in the catalogue");
        }
        let version = ptx.text().lines().find(|line| line.starts_with(".version"));
        assert_eq!(version, Some(".version 8.0"), "{name}");
        assert!(ptx.text().contains("\n.target sm_80\n"), "{name}");
    }
}

#[test]
fn the_reference_kernel_is_shipped_for_all_element_types_of_the_contract() {
    use ElementType::{Complex64, Complex128, F32, F64};
    for element in [F32, F64, Complex64, Complex128] {
        let program = KernelChoice::default().program(element);
        let ptx =
            kernels::shipped_as(&program).unwrap_or_else(|| panic!("{element} is not shipped"));
        for entry in &program.entries {
            assert!(ptx.symbol(entry).is_some(), "{entry}");
        }
    }
    // Another text or option makes another program, and so do entries that no single module has.
    let program = KernelChoice::default().program(F32);
    let of_f64 = KernelChoice::default().program(F64);
    let and_of_f64 = program.entries.iter().chain(&of_f64.entries);
    let changed = [
        Program { source: format!("{}\n", program.source).into(), ..program.clone() },
        Program { options: vec!["--fmad=true".into()], ..program.clone() },
        program.clone().with_entries(and_of_f64),
        program.clone().with_entries(["linrec_ref_fwd<float>"]),
        program.with_entries(Vec::<String>::new()),
    ];
    for program in changed {
        assert!(kernels::shipped_as(&program).is_none());
    }
}

/// Returns the sectors per request of the loads and of the stores of a kernel of
/// `access_patterns.cu` or `elementwise.cu`, with four blocks of 128 threads.
fn sectors(name: &str, entry: &str, arguments: &[Argument], memory: &Memory) -> (f64, f64) {
    let counters = Shipped::new(name, entry).run(memory, 4, 128, arguments).unwrap();
    let [loads, stores] = [Access::GlobalLoad, Access::GlobalStore].map(|access| {
        let sites: Vec<_> = counters.sites.iter().filter(|site| site.access == access).collect();
        let sum =
            |count: fn(&&linrec::simt::Site) -> u64| sites.iter().map(count).sum::<u64>() as f64;
        sum(|site| site.sectors) / sum(|site| site.requests)
    });
    (loads, stores)
}

#[test]
fn sectors_match_the_comments_of_the_kernels() {
    const LEN: usize = 1 << 14;
    let memory = Memory::new(1 << 30);
    let values: Vec<f32> = (0..LEN).map(|i| i as f32).collect();
    let (from, to) = (upload(&memory, "from", &values), allocate(&memory, "to", LEN));
    let number = |number: usize| Argument::Long(number as u64);
    let (threads, step) = (4 * 128, Argument::Int);
    let copy = |entry: &str, arguments: &[Argument]| {
        sectors("access_patterns", entry, &[&[from, to], arguments].concat(), &memory)
    };
    assert_eq!(copy("copy_coalesced<float>", &[number(threads)]), (4.0, 4.0));
    assert_eq!(copy("copy_coalesced<float2>", &[number(threads)]), (8.0, 8.0));
    assert_eq!(copy("copy_coalesced<double>", &[number(threads)]), (8.0, 8.0));
    assert_eq!(copy("copy_coalesced<float4>", &[number(threads)]), (16.0, 16.0));
    assert_eq!(download(&memory, to, 4 * threads), values[..4 * threads]);

    assert_eq!(copy("copy_shifted", &[number(threads), step(0)]), (4.0, 4.0));
    assert_eq!(copy("copy_shifted", &[number(threads), step(8)]), (4.0, 4.0));
    assert_eq!(copy("copy_shifted", &[number(threads), step(3)]), (5.0, 5.0));
    for (stride, expected) in [(1, 4.0), (2, 8.0), (4, 16.0), (8, 32.0), (16, 32.0)] {
        assert_eq!(copy("copy_strided", &[number(LEN), step(stride)]), (expected, expected));
    }
    assert_eq!(copy("copy_rows", &[number(threads), number(8)]), (32.0, 32.0));
    assert_eq!(copy("copy_rows", &[number(threads), number(32)]), (32.0, 32.0));
    assert_eq!(download(&memory, to, LEN), values);
    assert_eq!(copy("copy_broadcast", &[number(threads)]), (1.0, 4.0));
}

#[test]
fn the_roof_reads_and_writes_the_bytes_of_the_passes() {
    const LEN: usize = 500;
    let memory = Memory::new(1 << 30);
    let array = |name, start: usize| {
        let values: Vec<f32> = (start..start + LEN).map(|i| i as f32).collect();
        upload(&memory, name, &values)
    };
    let (a, b, c) = (array("a", 0), array("b", 1), array("c", 2));
    for (pack, size) in [("float", 1), ("float4", 4)] {
        let (ab, bc) = (allocate(&memory, "sum_ab", LEN), allocate(&memory, "sum_bc", LEN));
        let len = Argument::Long((LEN / size) as u64);
        let run = |entry: &str, arguments: &[Argument]| {
            let kernel = Shipped::new("elementwise", &format!("{entry}<{pack}>"));
            let counters = kernel.run(&memory, 4, 128, arguments).unwrap();
            counters.sites.iter().map(|site| site.bytes).sum::<u64>()
        };
        assert_eq!(run("elementwise_fwd", &[a, b, ab, len]), 12 * LEN as u64, "{pack}");
        assert_eq!(download(&memory, ab, LEN)[LEN - 1], 2.0 * LEN as f32 - 1.0);
        assert_eq!(run("elementwise_bwd", &[a, b, c, ab, bc, len]), 20 * LEN as u64, "{pack}");
        assert_eq!(download(&memory, bc, LEN)[LEN - 1], 2.0 * LEN as f32 + 1.0);
    }
}

fn compiler() -> &'static Nvrtc {
    let nvrtc = Nvrtc::find().unwrap_or_else(|error| panic!("{error}"));
    println!("NVRTC {:?}: {}", nvrtc.version(), nvrtc.path().display());
    nvrtc
}

#[test]
#[ignore = "needs NVRTC"]
fn every_configuration_compiles_for_every_architecture() {
    let nvrtc = compiler();
    for element in ElementType::ALL {
        let program = KernelChoice::default().program(element);
        for architecture in [80, 90, 120] {
            let compiled = nvrtc::compile(&program, architecture).unwrap();
            assert_eq!(compiled.log, "");
            let module = Module::parse(compiled.ptx.text()).unwrap();
            assert_eq!(module.unrounded(), [], "{element}");
            let symbols: HashSet<_> = compiled.ptx.entries().map(|(_, symbol)| symbol).collect();
            assert_eq!(symbols.len(), program.entries.len());
            assert!(symbols.iter().all(|symbol| module.kernel(symbol).is_some()));
            let target = format!(".target sm_{}", nvrtc.nearest(architecture).unwrap());
            assert!(compiled.ptx.text().contains(&target), "{target}");
        }
    }
}
