"""The part in Rust. Arrays are DLPack capsules (``object`` here); results are written in place."""

def forward(
    inputs: object,
    coeffs: object,
    initial: object | None,
    outputs: object,
    final_state: object | None = None,
    *,
    axis: int,
    reverse: bool,
    log_coeffs: bool,
    in_order: bool = False,
    stream: int = 0,
    threads: int = 0,
) -> None: ...
def backward(
    d_outputs: object,
    coeffs: object,
    outputs: object,
    initial: object | None,
    d_inputs: object,
    d_coeffs: object,
    d_initial: object,
    *,
    axis: int,
    reverse: bool,
    log_coeffs: bool,
    in_order: bool = False,
    stream: int = 0,
    threads: int = 0,
) -> None: ...
def selective_scan_forward(
    inputs: list[object | None],
    restarts: object | None,
    softplus: bool,
    results: list[object | None],
    *,
    stream: int = 0,
    threads: int = 0,
) -> None: ...
def selective_scan_backward(
    inputs: list[object | None],
    restarts: object | None,
    softplus: bool,
    given: list[object | None],
    gradients: list[object | None],
    *,
    stream: int = 0,
    threads: int = 0,
) -> None: ...
def panic() -> None: ...
def xla_handler(backward: bool, cuda: bool) -> object: ...
