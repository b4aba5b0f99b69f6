//! The lab's folder, and the programs in it.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::python::Environment;
use crate::workspace;

/// The file in the lab's folder that names what was built. It is written last.
pub(super) const STAMP: &str = "kept/base.txt";

/// The lab: all that the notebooks need, in one folder.
pub struct Lab {
    pub(super) root: PathBuf,
    pub(super) folder: PathBuf,
    pub(super) python: Environment,
}

impl Lab {
    /// Finds the lab of the workspace at `root` if [`prepare`](super::prepare) has made it. Nothing
    /// is installed or compiled.
    pub fn found(root: &Path) -> Option<Self> {
        let folder = workspace::target(root).join("lab").canonicalize().ok()?;
        folder.join(STAMP).is_file().then_some(())?;
        let python = Environment::found(&folder.join("venv"))?;
        Some(Lab { root: root.canonicalize().ok()?, folder, python })
    }

    /// The root of the workspace, as an absolute path.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The folders of this machine, the inner ones first, each with its replacement in outputs.
    pub fn folders(&self) -> Vec<(String, &'static str)> {
        let within = |folder: &Path, separator| format!("{}{separator}", folder.display());
        let separator = std::path::MAIN_SEPARATOR;
        vec![
            (within(&self.folder, separator), "target/lab/"),
            (within(&self.root, separator), ""),
            (self.root.display().to_string(), "."),
        ]
    }

    /// A program of the Python environment, whose Jupyter files are below `target/lab`.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new(self.python.program(program));
        // The variables that name Jupyter's folders outside of the environment.
        for (variable, name) in [
            ("JUPYTER_CONFIG_DIR", "config"),
            ("JUPYTER_DATA_DIR", "data"),
            ("JUPYTER_RUNTIME_DIR", "runtime"),
            ("JUPYTERLAB_SETTINGS_DIR", "settings"),
            ("JUPYTERLAB_WORKSPACES_DIR", "workspaces"),
        ] {
            command.env(variable, self.folder.join("jupyter").join(name));
        }
        command.current_dir(&self.root);
        command
    }
}
