//! Tests of the debugger on kernels of this repository.

use linrec::kernels;
use serde_json::{Value, json};

use crate::Live;

const FORWARD: [&str; 7] = [
    "inputs: f32[rows * len] = noise",
    "coeffs: f32[rows * len] = near-one",
    "outputs: f32[rows * len]",
    "initial: null",
    "final_state: f32[rows]",
    "num_seqs: i64 = rows",
    "seq_len: i64 = len",
];

/// Returns a scene with the scan of one block, or with a version of it that has a mistake.
fn scene(ptx: &str, source: &str) -> Value {
    let file = ptx.lines().find_map(|line| line.trim().strip_prefix(".file")?.split('"').nth(1));
    json!({
        "ptx": ptx,
        "symbol": "block_scan_false",
        "sources": { file.unwrap(): source },
        "grid": "rows",
        "block": "128",
        "sizes": { "rows": [2, 1, 4], "len": [300, 1, 512] },
        "arguments": FORWARD,
    })
}

fn block_scan() -> Value {
    shipped("block_scan")
}

/// Returns a scene with a shipped kernel: `block_scan`, or a version of it with a mistake.
fn shipped(name: &str) -> Value {
    let (_, ptx) = kernels::shipped().find(|(shipped, _)| *shipped == name).unwrap();
    scene(ptx.text(), kernels::source(&format!("{name}.cu")).unwrap())
}

fn ask(live: &mut Live, request: &Value) -> Value {
    let answer: Value = serde_json::from_str(&live.answer(&request.to_string())).unwrap();
    assert!(answer.get("error").is_none(), "{answer}");
    answer
}

fn open(live: &mut Live, scene: Value) -> Value {
    ask(live, &json!({"do": "open", "id": 1, "scene": scene, "step": 0}))
}

fn go(live: &mut Live, by: &str, back: bool) -> Value {
    ask(live, &json!({"do": "go", "id": 1, "by": by, "back": back}))
}

fn to(live: &mut Live, step: u64) -> Value {
    ask(live, &json!({"do": "go", "id": 1, "by": "step", "to": step}))
}

#[test]
fn lines_are_stepped_over_in_both_directions() {
    let mut live = Live::default();
    let opened = open(&mut live, block_scan());
    assert_eq!((&opened["end"], &opened["sizes"]["len"]), (&Value::Null, &json!(300)));
    assert_eq!(opened["shared"][0]["name"], "staging");
    let mut moments = vec![opened["view"]["step"].as_u64().unwrap()];
    let place = |view: &Value| {
        let part = |name: &str| view["place"][name].to_string();
        [part("file"), part("line"), view["warp"].to_string()]
    };
    let mut last = place(&opened["view"]);
    for _ in 0..200 {
        let view = go(&mut live, "line", false);
        assert_ne!(place(&view), last);
        moments.push(view["step"].as_u64().unwrap());
        last = place(&view);
    }
    for &moment in moments.iter().rev().skip(1) {
        assert_eq!(go(&mut live, "line", true)["step"], moment);
    }
    assert_eq!(go(&mut live, "line", true)["step"], 0);
}

#[test]
fn a_barrier_opens_when_all_have_arrived() {
    let mut live = Live::default();
    open(&mut live, block_scan());
    let view = go(&mut live, "barrier", false);
    assert!(view["events"].as_array().unwrap().iter().any(|event| event["kind"] == "barrier"));
    let warps = view["warps"].as_array().unwrap();
    assert_eq!(warps.len(), 4);
    assert!(warps.iter().all(|warp| warp["waits"] == false), "{warps:?}");
    let step = view["step"].as_u64().unwrap();
    let before = go(&mut live, "instruction", true);
    let waiting = before["warps"].as_array().unwrap().iter().filter(|warp| warp["waits"] == true);
    assert_eq!(waiting.count(), 3);
    assert!(go(&mut live, "barrier", false)["step"].as_u64().unwrap() >= step);
    assert_eq!(go(&mut live, "barrier", true)["step"], 0);
}

#[test]
fn registers_have_names_and_requests_have_sectors() {
    let mut live = Live::default();
    let length = open(&mut live, block_scan())["length"].as_u64().unwrap();
    let (mut named, mut coalesced) = (Vec::new(), false);
    for step in (0..length).step_by(7).chain(1..200) {
        let view = to(&mut live, step);
        for register in view["registers"].as_array().unwrap() {
            assert_eq!(register["values"].as_array().unwrap().len(), 32);
            named.extend(register["cpp"].as_str().map(str::to_owned));
        }
        for event in view["events"].as_array().unwrap() {
            coalesced |=
                event["kind"] == "global" && event["sectors"].as_array().unwrap().len() == 4;
        }
    }
    for name in ["inputs", "seq_len", "threadIdx.x"] {
        assert!(named.iter().any(|one| one == name), "{name}");
    }
    assert!(coalesced);
}

#[test]
fn the_end_says_whether_the_outputs_are_right() {
    let mut live = Live::default();
    let length = open(&mut live, block_scan())["length"].as_u64().unwrap();
    let end = to(&mut live, u64::MAX);
    assert_eq!((end["step"].as_u64(), end["wrong"].as_bool()), (Some(length), Some(false)));
    assert!(end["says"].as_str().unwrap().contains("as near to the loop's"), "{end}");
    let arrays = ask(&mut live, &json!({"do": "arrays", "id": 1}));
    assert_eq!(arrays["arrays"].as_array().unwrap().len(), 4);

    // A mistake that gives wrong outputs, and a mistake that is reported.
    open(&mut live, shipped("broken/lost_carry"));
    let end = to(&mut live, u64::MAX);
    assert!(end["says"].as_str().unwrap().contains("But output"), "{end}");
    assert_eq!(end["wrong"], true);
    let opened = open(&mut live, shipped("broken/missing_barrier_before_reuse"));
    assert!(
        opened["end"].as_str().unwrap().contains("missing_barrier_before_reuse.cu:"),
        "{opened}"
    );
    let end = to(&mut live, u64::MAX);
    assert!(end["wrong"] == true && end["says"].as_str().unwrap().contains("warp"), "{end}");
}

#[test]
fn scenes_that_cannot_run_are_errors() {
    let mut live = Live::default();
    let mut error = |change: &dyn Fn(&mut Value)| {
        let mut scene = block_scan();
        change(&mut scene);
        let request = json!({"do": "open", "id": 1, "scene": scene, "data": {}});
        let answer: Value = serde_json::from_str(&live.answer(&request.to_string())).unwrap();
        answer["error"].as_str().unwrap().to_owned()
    };
    for (what, change) in [
        (
            "no kernel `other`",
            &(|scene: &mut Value| scene["symbol"] = json!("other")) as &dyn Fn(&mut Value),
        ),
        ("PTX line", &|scene| scene["ptx"] = json!("rubbish")),
        ("there is no `columns`", &|scene| scene["grid"] = json!("columns")),
        ("1 to 128", &|scene| scene["block"] = json!("0")),
        ("-1", &|scene| scene["block"] = json!("0 - 1")),
        ("the kernel takes 8", &|scene| scene["arguments"][3] = json!("initial: i32 = 0")),
        ("no more arguments", &|scene| {
            scene["arguments"].as_array_mut().unwrap().push(json!("n: i32 = 1"))
        }),
        ("`x` is no number", &|scene| scene["arguments"][0] = json!("inputs: f32[len] = x")),
        ("missing field", &|scene| drop(scene.as_object_mut().unwrap().remove("grid"))),
    ] {
        let error = error(change);
        assert!(error.contains(what), "{what}: {error}");
    }
    assert!(
        live.answer("{\"do\": \"look\", \"id\": 7, \"block\": 0, \"warp\": 0}")
            .contains("nothing has been opened as 7")
    );
}

/// The example of the page "Your own kernel", and changes that readers may make.
#[test]
fn a_readers_kernel_runs() {
    let example = include_str!("../../../../xtask/theme/live/example.ptx");
    let mut live = Live::default();
    let kernels = ask(&mut live, &json!({"do": "kernels", "ptx": example}));
    assert_eq!(kernels["kernels"][0]["name"], "axpy");
    let params = kernels["kernels"][0]["params"].as_array().unwrap();
    let sizes: Vec<u64> = params.iter().map(|param| param["bytes"].as_u64().unwrap()).collect();
    assert_eq!(sizes, [8, 8, 4, 4]);
    let scene = |ptx: &str, count: u32| {
        json!({
            "ptx": ptx, "symbol": "axpy", "grid": ["2", "1", "1"], "block": ["64", "1", "1"],
            "arguments": [
                "x: f32[100] = index", "y: f32[100] = 1", "a: f32 = 0.5", format!("count: u32 = {count}"),
            ],
        })
    };
    let opened = open(&mut live, scene(example, 100));
    let end = to(&mut live, opened["length"].as_u64().unwrap());
    let counted = end["counters"].as_array().unwrap();
    // Three whole warps and one of four lanes, two loads each.
    assert!(counted.contains(&json!(["load requests", 8])), "{counted:?}");
    assert!(counted.contains(&json!(["sectors loaded", 26])), "{counted:?}");
    let arrays = ask(&mut live, &json!({"do": "arrays", "id": 1}));
    assert_eq!(arrays["arrays"][1]["values"][3], "2.5");

    // The last of 101 elements does not exist.
    let opened = open(&mut live, scene(example, 101));
    let says = opened["end"].as_str().unwrap();
    assert!(
        says.ends_with("lane 4: reads 4 bytes at 0 bytes past the end of buffer `x` (400 bytes)"),
        "{says}"
    );
    let endless = example.replace("@%p bra end;", "again: bra again;");
    let says = open(&mut live, scene(&endless, 100))["end"].as_str().unwrap().to_owned();
    assert!(says.contains("over the launch's bound of 1048576 instructions"), "{says}");
    let mut says = |ptx: &str, scene: Value| -> String {
        let kernels = live.answer(&json!({"do": "kernels", "ptx": ptx}).to_string());
        let opened = live.answer(&json!({"do": "open", "id": 1, "scene": scene}).to_string());
        kernels + &opened
    };
    let wrong = example.replace("fma.rn.f32", "fma.of.f32");
    let said = says(&wrong, scene(&wrong, 1));
    assert!(said.contains("PTX line 32"), "{said}");
    let mut few = scene(example, 1);
    few["arguments"].as_array_mut().unwrap().pop();
    assert!(says(example, few).contains("`count` has no value"));
    assert!(says("", scene("", 1)).contains("error"));
}
