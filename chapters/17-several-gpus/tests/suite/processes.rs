//! The example as a job of three processes, as the page starts it by hand.

use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// The example, which cargo builds beside this program.
fn job() -> PathBuf {
    let own = std::env::current_exe().unwrap();
    own.parent().and_then(|deps| deps.parent()).unwrap().join("examples").join("job")
}

fn started(rank: usize, size: usize, port: u16) -> Command {
    let mut command = Command::new(job().with_extension(std::env::consts::EXE_EXTENSION));
    command
        .env("LINREC_DEVICE", "simt")
        .env("RANK", rank.to_string())
        .env("LOCAL_RANK", rank.to_string())
        .env("WORLD_SIZE", size.to_string())
        .env("MASTER_ADDR", "127.0.0.1")
        .env("MASTER_PORT", port.to_string())
        .env_remove("TORCHELASTIC_RUN_ID")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

#[test]
fn three_processes_say_what_one_says() {
    let port = TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port() - 1;
    let children: Vec<_> = (0..3).map(|rank| started(rank, 3, port).spawn().unwrap()).collect();
    let said = children.into_iter().enumerate().map(|(rank, child)| {
        let output = child.wait_with_output().unwrap();
        let (out, error) =
            (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
        assert!(output.status.success(), "{error}");
        assert!(out.starts_with(&format!("rank {rank} of 3 on simt:{rank}: ")), "{out}");
        let last = out.trim().rsplit(' ').next().unwrap().to_owned();
        last.parse::<f32>().unwrap()
    });
    let said: Vec<f32> = said.collect();
    assert!(said.iter().all(|last| *last == said[0]), "{said:?}");
    // 1000 (1 - 0.999^16384)
    assert!((said[0] - 1000.0).abs() < 0.2, "{said:?}");
}

#[test]
fn a_process_without_a_rank_says_what_is_missing() {
    let mut command = started(0, 3, 29_500);
    for name in ["RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID"] {
        command.env_remove(name);
    }
    let output = command.output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && error.contains("no variable says which rank"), "{error}");
}
