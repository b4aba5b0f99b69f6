// A puzzle: the kernel with the chosen answer in its hole, the verdict, hints, and a form for the reader's PTX.

// The solved puzzles and the number of hints shown, by the puzzles' names, in the form of the terminal. A browser that stores
// nothing, as for pages from disk, holds them as long as the page is open.
const progress = {
    key: "linrec-puzzles",
    held: { solved: [], hints: {} },
    read() {
        try {
            const { solved, hints } = JSON.parse(localStorage.getItem(this.key) ?? "{}");
            if (Array.isArray(solved)) this.held.solved = [...new Set([...this.held.solved, ...solved])];
            if (hints && typeof hints === "object") this.held.hints = { ...this.held.hints, ...hints };
        } catch { /* nothing is kept, or it is damaged */ }
        return this.held;
    },
    change(change) {
        change(this.read());
        try {
            localStorage.setItem(this.key, JSON.stringify(this.held));
        } catch { /* then not */ }
        showProgress();
    },
};

// Shows the number of solved puzzles, and marks them in the list of the page.
function showProgress() {
    const all = document.querySelectorAll("[data-puzzle]");
    if (!all.length) return;
    const { solved } = progress.read();
    const links = [...document.querySelectorAll("main td a[href^='#']")];
    for (const link of links) {
        const is = solved.includes(link.hash.slice(1));
        link.parentElement.classList.toggle("solved", is);
        link.title = is ? "solved" : "";
    }
    const table = links[0]?.closest(".table-wrapper") ?? links[0]?.closest("table");
    if (!table) return;
    if (table.previousElementSibling?.dataset.progress == null) table.before(make("p", { "data-progress": "" }));
    table.previousElementSibling.textContent = `${solved.length} of ${all.length} are solved in this browser.`;
}

// Text with `code` in it, as elements.
const prose = (text) => text.split("`").map((part, i) => (i % 2 ? make("code", {}, part) : part));

// The milliseconds for which the page may stand still.
const MOST_BUSY = 24;

// Lets the page draw and handle keys.
const rest = () => new Promise((go) => setTimeout(go));

class Puzzle {
    constructor(folder) {
        this.folder = folder;
    }

    async begin(place) {
        await this.open();
        this.build();
        place.append(this.root);
        this.choose();
        this.showSolved();
        this.showHints();
    }

    // Loads the answers. A new module, after one that has stopped in the middle of a request, loads them again.
    async open() {
        this.delivered = await linrecLive.loadPuzzle(this.folder);
        const module = await linrecLive.start();
        if (module === this.module) return;
        Object.assign(this, await linrecLive.ask({ do: "puzzle", puzzle: this.delivered }));
        this.module = module;
    }

    build() {
        const { title } = this.delivered.description;
        const group = `hole-${this.name}`;
        this.radios = this.choices.map(({ name }, i) =>
            make("input", { type: "radio", name: group, value: name, checked: i === 0, change: () => this.choose() }));
        const choices = this.choices.map(({ hole }, i) =>
            make("label", { class: "choice" }, this.radios[i], make("code", {}, dedented(hole) || "(nothing)")));
        this.source = make("div", { class: "source", tabindex: 0, role: "region", "aria-label": `The kernel, ${title}` });
        const submit = (event) => {
            event.preventDefault();
            this.answer({ choice: this.chosen().name });
        };
        this.run = make("button", {}, "Run it");
        this.says = make("div", { class: "says verdict", role: "status" });
        this.step = make("button", { type: "button", class: "step", hidden: true, click: () => this.debug() }, "Go through this launch, step by step");
        this.steps = make("div", { class: "steps" });
        this.hint = make("button", { type: "button", class: "hint", click: () => this.oneHintMore() });
        this.hinted = make("ol", { class: "hints" });
        this.mark = make("span", { class: "solved-mark", hidden: true }, "solved");
        this.root = make("section", { class: "stepper", "aria-label": `Puzzle: ${title}`, keydown: (event) => event.stopPropagation() },
            make("p", { class: "title" }, title, " ", this.mark),
            make("form", { submit, "aria-label": "Choose the code for the hole" },
                make("fieldset", {}, make("legend", {}, "What belongs into the hole? The first answer is the present code."),
                    make("div", { class: "choices" }, ...choices)),
                this.source, this.run),
            this.says, this.step, this.steps,
            make("p", {}, this.hint), this.hinted, this.own());
    }

    // For readers with a compiler elsewhere.
    own() {
        this.text = make("textarea", { rows: 8, spellcheck: "false", autocapitalize: "off", "aria-label": "PTX" });
        const file = make("input", {
            type: "file", accept: ".ptx,.txt", "aria-label": "PTX from a file",
            change: async () => { this.text.value = await file.files[0].text(); },
        });
        const submit = (event) => {
            event.preventDefault();
            this.answer({ ptx: this.text.value });
        };
        return make("details", {}, make("summary", {}, "An answer of your own, compiled elsewhere"),
            make("p", {}, "Fill in the hole in the kernel above (nothing else has to be changed), compile it with ",
                make("code", {}, "nvcc --ptx --generate-line-info -arch=sm_80 --fmad=false"), ", and paste the PTX."),
            make("form", { submit, class: "yours", "aria-label": "PTX of your own" }, this.text,
                make("label", {}, "or from a file", file), make("button", {}, "Run this PTX")));
    }

    chosen() {
        return this.choices[Math.max(0, this.radios.findIndex(({ checked }) => checked))];
    }

    // Shows the kernel with the chosen answer.
    choose() {
        const { source, hole } = this.chosen();
        const lines = hole ? hole.split("\n").length - 1 : 0;
        this.lines = source.trimEnd().split("\n").map((line, i) =>
            make("li", { class: i >= this.above && i < this.above + lines ? "hole" : null }, line || " "));
        this.source.replaceChildren(make("ol", {}, ...this.lines));
        this.source.scrollTop = this.lines[this.above - 1].offsetTop - this.source.clientHeight / 3;
    }

    async answer(answer) {
        if (this.busy) return;
        this.busy = true;
        this.root.setAttribute("aria-busy", "true");
        this.says.replaceChildren(make("p", {}, "It runs …"));
        this.step.hidden = true;
        this.steps.replaceChildren();
        try {
            // The page draws the text so far first.
            await new Promise((go) => setTimeout(go, 30));
            await this.open();
            let verdict = await linrecLive.ask({ do: "try", puzzle: this.folder, ...answer });
            // The page stands still while the emulator runs: so it runs for some milliseconds at a time.
            for (let since = performance.now(); verdict.running; ) {
                verdict = await linrecLive.ask({ do: "try-on", puzzle: this.folder });
                if (!verdict.running || performance.now() - since < MOST_BUSY) continue;
                const { done, of } = verdict.running;
                this.says.firstElementChild.textContent = `It runs: ${done} of ${of} cases …`;
                await rest();
                since = performance.now();
            }
            this.tried = answer;
            this.show(verdict);
        } catch (error) {
            this.says.replaceChildren(make("p", { class: "wrong" }, error.message));
        }
        this.busy = false;
        this.root.removeAttribute("aria-busy");
    }

    show({ reached, says, parts, because, line, launched }) {
        const said = make("p", { class: reached ? "right" : "wrong" }, says);
        const why = parts.map(({ words, code }) => (words ? make("p", {}, ...prose(words)) : make("pre", {}, make("code", {}, dedented(code)))));
        if (because) why.push(make("p", {}, make("b", {}, "Solved. "), ...prose(because)));
        this.says.replaceChildren(said, ...why);
        for (const one of this.lines) one.removeAttribute("aria-current");
        const current = this.lines[line - 1];
        if (current) {
            current.setAttribute("aria-current", "step");
            this.source.scrollTop = current.offsetTop - this.source.clientHeight / 2;
        }
        this.step.hidden = !launched;
        if (reached) progress.change((held) => { if (!held.solved.includes(this.name)) held.solved.push(this.name); });
        this.showSolved();
    }

    showSolved() {
        this.mark.hidden = !progress.read().solved.includes(this.name);
    }

    oneHintMore() {
        progress.change((held) => { held.hints[this.name] = Math.min(this.hints.length, (held.hints[this.name] ?? 0) + 1); });
        this.showHints();
        this.hinted.lastElementChild.focus();
    }

    showHints() {
        const shown = Math.min(this.hints.length, Number(progress.read().hints[this.name]) || 0);
        this.hinted.replaceChildren(...this.hints.slice(0, shown).map((hint) => make("li", { tabindex: -1 }, ...prose(hint))));
        this.hint.textContent = shown ? `One more hint (${shown} of ${this.hints.length} are shown)` : `A hint (of ${this.hints.length})`;
        this.hint.hidden = shown === this.hints.length;
    }

    async debug() {
        const ptx = this.tried.ptx ?? this.delivered.modules[this.tried.choice];
        const choice = this.choices.find(({ name }) => name === this.tried.choice);
        const sources = choice ? { [`puzzles/${this.folder}/puzzle.cu`]: choice.source } : {};
        const debug = new Tried(this.folder, { ptx, sources });
        try {
            await debug.open();
            this.steps.replaceChildren(debug.root);
            debug.show();
            debug.ways[0].focus();
        } catch (error) {
            this.steps.replaceChildren(make("p", { class: "wrong" }, error.message));
        }
    }
}

// Lines without their common indentation.
function dedented(text) {
    const lines = text.trimEnd().split("\n");
    const filled = lines.filter((line) => line.trim());
    const blanks = Math.min(...filled.map((line) => line.length - line.trimStart().length));
    return filled.length ? lines.map((line) => line.slice(blanks)).join("\n") : "";
}

// The launch of the verdict, from its end backward.
class Tried extends Debugger {
    constructor(folder, variant) {
        super(folder);
        this.variant = variant;
    }

    async open() {
        this.scene = { title: "The launch of this verdict", sizes: {} };
        this.arrays = [];
        this.form = make("form", { hidden: true });
        this.build();
        this.link.remove();
        const opened = await linrecLive.ask({ do: "open-tried", id: this.id, puzzle: this.name });
        this.length = opened.length;
        this.variables = opened.shared;
        this.view = opened.view;
    }

    // It has no address.
    showLink() {}
}
