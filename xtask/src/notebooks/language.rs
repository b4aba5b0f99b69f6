//! The language of a notebook's cells: Rust, or Python in the chapter about PyTorch.

use serde_json::{Map, Value, json};

/// A language, with the kernel of the lab that runs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    /// Run by evcxr.
    Rust,
    /// Run by ipykernel, which comes with JupyterLab.
    Python,
}

impl Language {
    /// The language that a notebook's metadata name; Rust if they name no known language.
    pub fn of(metadata: &Map<String, Value>) -> Self {
        let kernel = metadata.get("kernelspec").and_then(|kernel| kernel.get("language"));
        match kernel.and_then(Value::as_str) {
            Some("python") => Language::Python,
            _ => Language::Rust,
        }
    }

    /// The metadata of a notebook in this language, without a version.
    pub fn metadata(self) -> Map<String, Value> {
        let metadata = match self {
            Language::Rust => json!({
                "kernelspec": {"display_name": "Rust", "language": "rust", "name": "rust"},
                "language_info": {"file_extension": ".rs", "mimetype": "text/rust", "name": "Rust"},
            }),
            Language::Python => json!({
                "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
                "language_info":
                    {"file_extension": ".py", "mimetype": "text/x-python", "name": "python"},
            }),
        };
        metadata.as_object().cloned().unwrap_or_default()
    }

    /// The name after the fence of a block of code.
    pub fn fence(self) -> &'static str {
        match self {
            Language::Rust => "rust",
            Language::Python => "python",
        }
    }

    /// The text in an exercise's cell that the reader's answer replaces.
    pub fn unanswered(self) -> &'static str {
        match self {
            Language::Rust => "= None;",
            Language::Python => "answer = None",
        }
    }

    /// An exercise's cell with an answer in place of [`unanswered`](Language::unanswered).
    pub fn answered(self, source: &str, answer: &str) -> String {
        let answer = match self {
            Language::Rust => format!("= {answer};"),
            Language::Python => format!("answer = {answer}"),
        };
        source.replace(self.unanswered(), &answer)
    }

    /// Code that runs a cell.
    pub fn runs(self, code: &str) -> String {
        match self {
            Language::Rust => format!("{{\n{code}\n}};\n"),
            Language::Python => format!("exec({})\n", json!(code)),
        }
    }

    /// Code that runs a cell, and prints `refused` if that fails.
    pub fn expects_failure(self, code: &str) -> String {
        match self {
            Language::Rust => format!(
                "{{\nlet hook = std::panic::take_hook();\n\
                 std::panic::set_hook(Box::new(|_| {{}}));\n\
                 let refused = std::panic::catch_unwind(|| {{\n{code}\n}}).is_err();\n\
                 std::panic::set_hook(hook);\n\
                 if refused {{ println!(\"refused\") }}\n}};\n"
            ),
            Language::Python => {
                let code = json!(code);
                format!("try:\n    exec({code})\nexcept Exception:\n    print(\"refused\")\n")
            }
        }
    }
}
