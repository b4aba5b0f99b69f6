//! Proves that the exercises accept right answers only: after the last cell, a run answers each of
//! them with the notebook's solution and with the wrong answers that the notebook lists.

use serde_json::Value;

use super::format::{Cell, Notebook};

/// The text that [`exercise`](lesson::notebook) prints for a right answer.
const RIGHT: &str = "Right.\n";

/// The key of an exercise's wrong answers, in the metadata of its cell.
pub(super) const WRONG: &str = "wrong";

/// The prefix that makes a cell's name the name of its proof.
const PROOF: &str = "proof-of-";

/// Makes the code cells that answer the exercises, each with the solution and every wrong answer.
/// The error has a line for each exercise without a solution or without a wrong answer.
pub fn proofs(notebook: &Notebook) -> Result<Vec<Cell>, String> {
    let mut proofs = Vec::new();
    let mut faults = Vec::new();
    for cell in notebook.cells.iter().filter(|cell| cell.is_code() && is_exercise(cell)) {
        match proof(notebook, cell) {
            Ok(code) => proofs.push(Cell::code(&format!("{PROOF}{}", cell.id), &code)),
            Err(fault) => faults.push(format!("exercise {}: {fault}", cell.id)),
        }
    }
    if faults.is_empty() { Ok(proofs) } else { Err(faults.join("\n")) }
}

/// The fault of an exercise whose proof printed this text; `None` if it has no fault.
pub fn verdict(proof: &Cell, printed: &str) -> Option<String> {
    let id = proof.id.strip_prefix(PROOF)?;
    let mut answers = printed.split_inclusive('\n');
    if answers.next() != Some(RIGHT) {
        return Some(format!("exercise {id}: the solution is not accepted: {}", printed.trim()));
    }
    let accepted = answers.position(|answer| answer != REFUSED)?;
    Some(format!("exercise {id}: wrong answer {} is accepted", accepted + 1))
}

/// The text that a proof prints for a wrong answer that is refused.
const REFUSED: &str = "refused\n";

/// True if the cell asks for an answer. A cell that defines a judge does not.
fn is_exercise(cell: &Cell) -> bool {
    cell.source.0.lines().any(|line| line.starts_with("exercise("))
}

/// The code of a proof: first the solution, then the wrong answers, whose failures are caught.
fn proof(notebook: &Notebook, cell: &Cell) -> Result<String, String> {
    let (source, language) = (&cell.source.0, notebook.language());
    if source.matches(language.unanswered()).count() != 1 {
        return Err(format!("its cell should hold `{}` once", language.unanswered()));
    }
    let solution = solution(notebook, &cell.id)?;
    let mut code = language.runs(&language.answered(source, solution));
    let wrong = cell.metadata.get(WRONG).and_then(Value::as_array);
    let wrong = wrong.into_iter().flatten().filter_map(Value::as_str).collect::<Vec<_>>();
    if wrong.is_empty() {
        return Err(format!("its cell's metadata names no answer under `{WRONG}`"));
    }
    for answer in wrong {
        code += &language.expects_failure(&language.answered(source, answer));
    }
    Ok(code)
}

/// The first block of code in the cell `ID-solution`.
fn solution<'n>(notebook: &'n Notebook, id: &str) -> Result<&'n str, String> {
    let (wanted, language) = (format!("{id}-solution"), notebook.language());
    let cell = notebook.cells.iter().find(|cell| cell.id == wanted);
    let cell = cell.ok_or_else(|| format!("there is no cell {wanted}"))?;
    let (_, block) = cell
        .source
        .0
        .split_once(&format!("```{}\n", language.fence()))
        .ok_or_else(|| format!("cell {wanted} has no block of {language:?}"))?;
    block
        .split_once("\n```")
        .map(|(block, _)| block)
        .ok_or_else(|| format!("the block of {language:?} in cell {wanted} has no end"))
}

#[cfg(test)]
mod tests {
    use super::{proofs, verdict};
    use crate::notebooks::format::{Cell, Notebook};
    use crate::notebooks::language::Language;
    use serde_json::json;

    fn notebook(solution: &str, wrong: &[&str]) -> Notebook {
        let mut exercise = Cell::code(
            "even",
            "let answer: Option<u32> = None;\nexercise(answer, |n| assert!(n % 2 == 0));",
        );
        exercise.metadata.insert("wrong".to_owned(), json!(wrong));
        Notebook::new(vec![exercise, Cell::code("even-solution", solution)])
    }

    #[test]
    fn the_solution_and_the_wrong_answers_take_the_place_of_none() {
        let code = proofs(&notebook("So:\n```rust\nSome(4)\n```\n", &["Some(5)"])).unwrap();
        assert_eq!(code.len(), 1);
        let code = &code[0].source.0;
        assert!(code.starts_with("{\nlet answer: Option<u32> = Some(4);\nexercise("), "{code}");
        assert!(code.contains("let answer: Option<u32> = Some(5);"), "{code}");
    }

    #[test]
    fn an_exercise_without_solution_or_wrong_answer_is_a_fault() {
        let missing = proofs(&notebook("Some(4)", &["Some(5)"])).unwrap_err();
        assert_eq!(missing, "exercise even: cell even-solution has no block of Rust");
        let missing = proofs(&notebook("```rust\nSome(4)\n```", &[])).unwrap_err();
        assert!(missing.contains("names no answer"), "{missing}");
    }

    #[test]
    fn an_exercise_in_python() {
        let mut notebook = notebook("So:\n```python\n4\n```\n", &["5"]);
        notebook.metadata = Language::Python.metadata();
        notebook.cells[0].source.0 = "answer = None\nexercise(answer, lambda n: n % 2 == 0)".into();
        let code = proofs(&notebook).unwrap();
        assert_eq!(
            code[0].source.0,
            "exec(\"answer = 4\\nexercise(answer, lambda n: n % 2 == 0)\")\n\
             try:\n    exec(\"answer = 5\\nexercise(answer, lambda n: n % 2 == 0)\")\n\
             except Exception:\n    print(\"refused\")\n"
        );
    }

    #[test]
    fn only_right_and_then_refused_will_do() {
        let proof = Cell::code("proof-of-even", "");
        assert_eq!(verdict(&proof, "Right.\nrefused\nrefused\n"), None);
        for (printed, what) in [
            ("Right.\nRight.\n", "exercise even: wrong answer 1 is accepted"),
            ("Right.\nrefused\nRight.\n", "exercise even: wrong answer 2 is accepted"),
            ("Not answered yet\nrefused\n", "not accepted: Not answered yet"),
            ("", "not accepted"),
        ] {
            let verdict = verdict(&proof, printed).unwrap_or_default();
            assert!(verdict.contains(what), "{printed}: {verdict}");
        }
    }
}
