//! The arrays of a selective scan on the CPU, and the checks that their shapes fit together.

use ndarray::{
    ArrayView1, ArrayView2, ArrayView3, ArrayView4, ArrayViewMut1, ArrayViewMut2, ArrayViewMut3,
    ArrayViewMut4,
};

use crate::Error;
use crate::validate::same_shape;

/// The coupling of the states to the inputs (`B`) or to the outputs (`C`), or its gradient.
#[derive(Debug, Clone, Copy)]
pub enum Coupling<V, C> {
    /// One for each step and group of channels: `[batch, groups, states, len]`.
    Varying(V),
    /// One for each channel, the same at all steps and in all batches: `[channels, states]`.
    Constant(C),
}

/// A coupling that is read.
pub type CouplingView<'a, T> = Coupling<ArrayView4<'a, T>, ArrayView2<'a, T>>;
/// The array for the gradient of a coupling.
pub type CouplingViewMut<'a, T> = Coupling<ArrayViewMut4<'a, T>, ArrayViewMut2<'a, T>>;

impl<T> CouplingView<'_, T> {
    fn shape(&self) -> &[usize] {
        match self {
            Coupling::Varying(array) => array.shape(),
            Coupling::Constant(array) => array.shape(),
        }
    }
}

impl<T> CouplingViewMut<'_, T> {
    fn shape(&self) -> &[usize] {
        match self {
            Coupling::Varying(array) => array.shape(),
            Coupling::Constant(array) => array.shape(),
        }
    }
}

/// The inputs of a selective scan, of any strides.
#[derive(Debug, Clone, Copy)]
pub struct ScanViews<'a, T> {
    /// `u`, `[batch, channels, len]`.
    pub u: ArrayView3<'a, T>,
    /// The step sizes before bias and softplus, `[batch, channels, len]`.
    pub delta: ArrayView3<'a, T>,
    /// `A`, `[channels, states]`: rates of growth; states with a negative rate decay.
    pub a: ArrayView2<'a, T>,
    /// `B`.
    pub b: CouplingView<'a, T>,
    /// `C`.
    pub c: CouplingView<'a, T>,
    /// `D`, `[channels]`: the factor with which `u` is added to the output; `None` means zero.
    pub d: Option<ArrayView1<'a, T>>,
    /// `z`, `[batch, channels, len]`: the outputs are multiplied by `z sigmoid(z)`.
    pub z: Option<ArrayView3<'a, T>>,
    /// The bias that is added to `delta`, `[channels]`.
    pub delta_bias: Option<ArrayView1<'a, T>>,
    /// True if the softplus of the sum is the step size.
    pub softplus: bool,
    /// The states before the first step, `[batch, channels, states]`; `None` means zero.
    pub initial: Option<ArrayView3<'a, T>>,
    /// The steps at which sequences begin within the rows of a batch, `[batch, len]`: where it is
    /// not 0, the states before that step count as zero. At the first step it overrules `initial`.
    pub restarts: Option<ArrayView2<'a, u8>>,
}

/// The arrays for the results of a selective scan. They are overwritten.
#[derive(Debug)]
pub struct ScanResults<'a, T> {
    /// The outputs, `[batch, channels, len]`.
    pub out: ArrayViewMut3<'a, T>,
    /// The states after the last step, `[batch, channels, states]`. Without any step they are the
    /// initial states.
    pub last: Option<ArrayViewMut3<'a, T>>,
    /// The states that the backward pass reads, `[batch, ceil(len / 64), channels, states]`: those
    /// before each 64th step.
    pub checkpoints: Option<ArrayViewMut4<'a, T>>,
}

/// The gradients of a loss with respect to the results of a selective scan, and the checkpoints
/// of its forward pass.
#[derive(Debug, Clone, Copy)]
pub struct ScanDerivatives<'a, T> {
    /// The gradient with respect to the outputs, `[batch, channels, len]`.
    pub d_out: ArrayView3<'a, T>,
    /// The gradient with respect to the last states, `[batch, channels, states]`; `None` means
    /// zero.
    pub d_last: Option<ArrayView3<'a, T>>,
    /// The checkpoints of the forward pass.
    pub checkpoints: ArrayView4<'a, T>,
}

/// The arrays for the gradients with respect to the inputs of a selective scan, each of its input's
/// shape. They are overwritten. Where an array is `None`, the gradient is not wanted, or its input
/// was not given.
#[derive(Debug)]
pub struct ScanViewsMut<'a, T> {
    /// The gradient with respect to `u`.
    pub u: ArrayViewMut3<'a, T>,
    /// The gradient with respect to `delta`, before bias and softplus.
    pub delta: ArrayViewMut3<'a, T>,
    /// The gradient with respect to `A`.
    pub a: ArrayViewMut2<'a, T>,
    /// The gradient with respect to `B`.
    pub b: CouplingViewMut<'a, T>,
    /// The gradient with respect to `C`.
    pub c: CouplingViewMut<'a, T>,
    /// The gradient with respect to `D`.
    pub d: Option<ArrayViewMut1<'a, T>>,
    /// The gradient with respect to `z`.
    pub z: Option<ArrayViewMut3<'a, T>>,
    /// The gradient with respect to the bias.
    pub delta_bias: Option<ArrayViewMut1<'a, T>>,
    /// The gradient with respect to the initial states.
    pub initial: Option<ArrayViewMut3<'a, T>>,
}

/// The sizes of a selective scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScanSizes {
    pub batch: usize,
    pub channels: usize,
    pub groups: usize,
    pub states: usize,
    pub len: usize,
}

impl ScanSizes {
    /// The number of channels of a group.
    pub fn group_channels(self) -> usize {
        self.channels / self.groups.max(1)
    }

    /// The number of tiles of `steps` steps.
    pub fn tiles(self, steps: usize) -> usize {
        self.len.div_ceil(steps)
    }

    fn rows(self) -> [usize; 3] {
        [self.batch, self.channels, self.len]
    }

    fn states(self) -> [usize; 3] {
        [self.batch, self.channels, self.states]
    }

    fn checkpoints(self, steps: usize) -> [usize; 4] {
        [self.batch, self.tiles(steps), self.channels, self.states]
    }
}

const FORWARD: &str = "selective_scan";
const BACKWARD: &str = "selective_scan_backward";

impl<T> ScanViews<'_, T> {
    /// Checks that all shapes fit together.
    pub fn sizes(&self, operation: &'static str) -> Result<ScanSizes, Error> {
        let ((batch, channels, len), (_, states)) = (self.u.dim(), self.a.dim());
        let mut sizes = ScanSizes { batch, channels, groups: 1, states, len };
        let u = |name, shape: &[usize]| same_shape(operation, ("u", self.u.shape()), (name, shape));
        let expect = |name, wanted: &[usize], shape: &[usize]| {
            same_shape(operation, ("expected", wanted), (name, shape))
        };
        u("delta", self.delta.shape())?;
        self.z.map_or(Ok(()), |z| u("z", z.shape()))?;
        expect("A", &[channels, states], self.a.shape())?;
        let mut varying = None;
        for (name, coupling) in [("B", &self.b), ("C", &self.c)] {
            match coupling {
                Coupling::Constant(array) => expect(name, &[channels, states], array.shape())?,
                Coupling::Varying(array) => {
                    sizes.groups = *varying.get_or_insert(array.dim().1);
                    let groups = sizes.groups;
                    if groups == 0 || !channels.is_multiple_of(groups) {
                        return Err(Error::Unsupported {
                            engine: "selective scan".into(),
                            what: format!("{channels} channels in {groups} groups in {operation}"),
                        });
                    }
                    expect(name, &[batch, groups, states, len], array.shape())?;
                }
            }
        }
        for (name, array) in [("D", &self.d), ("delta_bias", &self.delta_bias)] {
            array.map_or(Ok(()), |array| expect(name, &[channels], array.shape()))?;
        }
        self.initial.map_or(Ok(()), |it| expect("initial", &sizes.states(), it.shape()))?;
        self.restarts.map_or(Ok(()), |it| expect("restarts", &[batch, len], it.shape()))?;
        Ok(sizes)
    }
}

/// Checks the arrays of a forward pass.
pub fn check_forward<T>(
    inputs: &ScanViews<T>,
    results: &ScanResults<T>,
    steps: usize,
) -> Result<ScanSizes, Error> {
    let sizes = inputs.sizes(FORWARD)?;
    let expect = |name, wanted: &[usize], shape: &[usize]| {
        same_shape(FORWARD, ("expected", wanted), (name, shape))
    };
    expect("out", &sizes.rows(), results.out.shape())?;
    if let Some(last) = &results.last {
        expect("last", &sizes.states(), last.shape())?;
    }
    if let Some(checkpoints) = &results.checkpoints {
        expect("checkpoints", &sizes.checkpoints(steps), checkpoints.shape())?;
    }
    Ok(sizes)
}

/// Checks the arrays of a backward pass.
pub fn check_backward<T>(
    inputs: &ScanViews<T>,
    given: &ScanDerivatives<T>,
    gradients: &ScanViewsMut<T>,
    steps: usize,
) -> Result<ScanSizes, Error> {
    let sizes = inputs.sizes(BACKWARD)?;
    let expect = |name, wanted: &[usize], shape: &[usize]| {
        same_shape(BACKWARD, ("expected", wanted), (name, shape))
    };
    expect("d_out", &sizes.rows(), given.d_out.shape())?;
    given.d_last.map_or(Ok(()), |d_last| expect("d_last", &sizes.states(), d_last.shape()))?;
    expect("checkpoints", &sizes.checkpoints(steps), given.checkpoints.shape())?;
    expect("the gradient of u", &sizes.rows(), gradients.u.shape())?;
    expect("the gradient of delta", &sizes.rows(), gradients.delta.shape())?;
    expect("the gradient of A", inputs.a.shape(), gradients.a.shape())?;
    expect("the gradient of B", inputs.b.shape(), gradients.b.shape())?;
    expect("the gradient of C", inputs.c.shape(), gradients.c.shape())?;
    if let Some(z) = &gradients.z {
        expect("the gradient of z", &sizes.rows(), z.shape())?;
    }
    for (name, array) in
        [("the gradient of D", &gradients.d), ("the gradient of delta_bias", &gradients.delta_bias)]
    {
        if let Some(array) = array {
            expect(name, &[sizes.channels], array.shape())?;
        }
    }
    if let Some(initial) = &gradients.initial {
        expect("the gradient of initial", &sizes.states(), initial.shape())?;
    }
    Ok(sizes)
}
