// The debugger: the reader steps through a kernel, forward and backward.

// The addresses of states: #live=tile&len=300&step=12.
const linked = () => (location.hash.startsWith("#live=") ? new URLSearchParams(location.hash.slice(1)) : null);

const END = 2 ** 31;
// The ways to fill an array, besides numbers.
const KINDS = ["noise", "gates", "near-one", "impulse", "index", "zeros", "1, 0.5"];
const WAYS = [
    ["start", "start", "To the start", "Home", { by: "step", to: 0 }],
    ["barrier", "◀ barrier", "Back by a barrier", "B", { by: "barrier", back: true }],
    ["line", "◀ line", "Back by a line", "ArrowLeft", { by: "line", back: true }],
    ["instruction", "◀ instr.", "Back by an instruction", "I", { by: "instruction", back: true }],
    ["instruction", "instr. ▶", "On by an instruction", "i", { by: "instruction", back: false }],
    ["line", "line ▶", "On by a line", "ArrowRight", { by: "line", back: false }],
    ["barrier", "barrier ▶", "On by a barrier", "b", { by: "barrier", back: false }],
    ["end", "end", "To the end", "End", { by: "step", to: END }],
];

class Debugger {
    static count = 0;

    constructor(name) {
        this.name = name;
        this.id = Debugger.count++;
    }

    // Runs the launch, which needs no page.
    prepare() {
        this.prepared ??= (async () => {
            linrecLive.start().catch(() => {}); // In parallel: the request reports an error.
            this.scene = await linrecLive.loadScene(this.name);
            this.arrays = this.scene.arguments.map((line) => /^(\w+): \w+\[.*\] = (.*)$/.exec(line)).filter(Boolean);
            const link = this.linked();
            this.form = this.choices(link);
            this.build();
            await this.run(Number(link?.get("step") ?? 0));
        })();
        return this.prepared;
    }

    async begin(place) {
        await this.prepare();
        place.append(this.root);
        this.show();
        if (this.linked()) place.scrollIntoView({ block: "start" });
        window.addEventListener("hashchange", () => this.follow());
    }

    linked() {
        const link = linked();
        return link?.get("live") === this.name ? link : null;
    }

    async follow() {
        const link = this.linked();
        if (!link) return;
        for (const input of this.form.querySelectorAll("input")) {
            input.value = link.get(input.name) ?? input.defaultValue;
        }
        this.chooser.value = link.get("kernel") ?? this.scene.variants[0].name;
        await this.run(Number(link.get("step") ?? 0)).then(() => this.show(), (error) => this.fail(error));
    }

    // The form with the reader's choices.
    choices(link) {
        const choice = (name, attributes) =>
            make("label", {}, name, make("input", { name, value: link?.get(name), ...attributes }));
        const sizes = Object.entries(this.scene.sizes).map(([name, [first, least, most]]) =>
            choice(name, { type: "number", min: least, max: most, value: link?.get(name) ?? first, required: true }));
        const list = `live-values-${this.id}`;
        const data = this.arrays.map(([, name, values]) =>
            choice(name, { type: "text", value: link?.get(name) ?? values, list, required: true, spellcheck: "false" }));
        const kinds = KINDS.map((value) => make("option", { value }));
        const submit = (event) => {
            event.preventDefault();
            // A fault is shown at its place.
            this.run(this.chooser.selectedIndex ? END : 0).then(() => this.show(true), (error) => this.fail(error));
        };
        const variants = this.scene.variants.map(({ name }) => make("option", { selected: name === link?.get("kernel") }, name));
        this.chooser = make("select", { name: "kernel", "aria-label": "Kernel", change: () => this.form.requestSubmit() }, ...variants);
        this.chooser.hidden = variants.length < 2;
        return make("form", { submit, "aria-label": "Kernel, sizes and data" }, this.chooser, ...sizes, ...data,
            make("datalist", { id: list }, ...kinds), make("button", {}, "Run"));
    }

    build() {
        this.ways = WAYS.map(([kind, text, title, key, go]) =>
            make("button", {
                type: "button", title: `${title} (${key})`, "aria-label": title, "data-kind": kind,
                "aria-keyshortcuts": key, click: () => this.go(go),
            }, text));
        this.slider = make("input", {
            type: "range", min: 0, "aria-label": "Step",
            input: () => this.go({ by: "step", to: Number(this.slider.value) }),
        });
        this.says = make("p", { class: "says", role: "status" });
        this.instruction = make("code", { class: "instruction" });
        this.link = make("a", { class: "link" }, "Link to this step");
        this.counters = make("p", { class: "counters" });
        const pane = (name, title, scrolls) => {
            this[name] = make("div", { class: name, ...(scrolls && { tabindex: 0, role: "region", "aria-label": title }) });
            return make("section", {}, make("p", { class: "head" }, title), this[name]);
        };
        const { title } = this.scene;
        this.root = make("section", { class: "stepper", "aria-label": title, keydown: (event) => this.key(event) },
            make("p", { class: "title" }, title),
            make("p", {}, "The emulator runs it here, in your browser, from the PTX that a GPU is given. Keys: ← → by lines of the source, ",
                "i I by instructions, b B by barriers, Home and End."),
            this.form,
            make("div", { class: "ways", role: "toolbar", "aria-label": "Go through the launch" }, ...this.ways),
            this.slider, this.says,
            make("p", {}, this.instruction, " ", this.link),
            this.counters,
            pane("source", "Source", true),
            pane("did", "What the last step did"),
            pane("warps", "Warps"),
            pane("registers", "Registers by lane", true),
            pane("shared", "Shared memory by bank", true));
    }

    // The sizes and data in the form.
    chosen() {
        const value = (name) => this.form.elements[name].value;
        const sizes = Object.keys(this.scene.sizes).map((name) => [name, Math.trunc(Number(value(name)))]);
        const data = this.arrays.map(([, name]) => [name, value(name)]);
        return { sizes: Object.fromEntries(sizes), data: Object.fromEntries(data) };
    }

    async run(step) {
        this.variant = this.scene.variants[this.chooser.selectedIndex];
        const scene = { ...this.scene, ...this.variant, variants: undefined };
        const opened = await linrecLive.ask({ do: "open", id: this.id, scene, ...this.chosen(), step });
        this.length = opened.length;
        this.variables = opened.shared;
        for (const [name, value] of Object.entries(opened.sizes)) this.form.elements[name].value = value;
        this.view = opened.view;
        this.file = null;
    }

    // Draws at most as often as the screen: the slider, or a key that is held down, is faster.
    go(go) {
        this.next = go;
        if (this.going) return;
        this.root.setAttribute("aria-busy", "true");
        this.going = (async () => {
            while (this.next) {
                const next = this.next;
                this.next = null;
                this.view = await linrecLive.ask({ do: "go", id: this.id, ...next });
                this.show(true);
                await new Promise(requestAnimationFrame);
            }
        })().catch((error) => this.fail(error)).finally(() => {
            this.going = null;
            this.root.removeAttribute("aria-busy");
        });
    }

    async look(block, warp) {
        this.view = await linrecLive.ask({ do: "look", id: this.id, block, warp });
        this.show();
    }

    key(event) {
        if (event.ctrlKey || event.metaKey || event.altKey) return;
        // The book turns its pages with the arrow keys, and searches with letters.
        event.stopPropagation();
        if (event.target.matches("input, select, textarea")) return;
        // The arrow keys scroll a box that can scroll.
        if (event.target.matches("[tabindex]") && event.key.length > 1) return;
        const way = WAYS.find(([, , , key]) => key === event.key);
        if (!way) return;
        event.preventDefault();
        this.go(way[4]);
    }

    fail(error) {
        this.says.textContent = error.message;
        this.says.classList.add("wrong");
    }

    show(moved) {
        const view = this.view;
        this.says.textContent = view.says;
        this.says.classList.toggle("wrong", view.wrong);
        this.instruction.textContent = view.place?.text ?? "";
        this.slider.max = this.length;
        this.slider.value = view.step;
        this.slider.setAttribute("aria-valuetext", `${view.step} of ${this.length}`);
        for (const [i, way] of this.ways.entries()) {
            // A disabled button would lose the focus.
            way.setAttribute("aria-disabled", String(!(i < WAYS.length / 2 ? view.back : view.ahead)));
        }
        this.counters.textContent = view.counters.length
            ? `So far: ${view.counters.map(([what, count]) => `${what} ${count.toLocaleString("en")}`).join("; ")}.` : "";
        this.showSource(view.place);
        this.did.replaceChildren(...this.events(view));
        this.warps.replaceChildren(...view.warps.map((warp) => this.warp(warp)));
        this.showRegisters(view);
        this.showShared(view);
        this.showLink(moved);
    }

    showLink(moved) {
        const { view } = this;
        const { sizes, data } = this.chosen();
        const others = this.arrays.filter(([, name, values]) => data[name] !== values).map(([, name]) => [name, data[name]]);
        if (this.chooser.selectedIndex) others.push(["kernel", this.chooser.value]);
        this.link.href = `#${new URLSearchParams({ live: this.name, ...sizes, ...Object.fromEntries(others), step: view.step })}`;
        if (moved) {
            clearTimeout(this.noted);
            this.noted = setTimeout(() => history.replaceState(history.state, "", this.link.href), 400);
        }
    }

    showSource(place) {
        const { sources, ptx } = this.variant;
        // Without its source, a kernel is shown as PTX.
        const file = place ? (place.file in sources ? place.file : "PTX") : this.file ?? Object.keys(sources)[0] ?? "PTX";
        if (file !== this.file) {
            this.file = file;
            this.lines = (sources[file] ?? ptx).split("\n").map((line) => make("li", {}, line || " "));
            this.source.replaceChildren(make("p", { class: "file" }, file), make("ol", {}, ...this.lines));
        }
        this.current?.removeAttribute("aria-current");
        this.current = place && this.lines?.[(file in sources ? place.line : place.ptx) - 1];
        if (!this.current) return;
        this.current.setAttribute("aria-current", "step");
        this.source.scrollTop = this.current.offsetTop - this.source.clientHeight / 2;
    }

    warp({ block, warp, says, waits, left }) {
        const [shownBlock, shown] = this.view.shown ?? [];
        const turn = block === this.view.block && warp === this.view.warp;
        return make("button", {
            type: "button", "aria-pressed": String(block === shownBlock && warp === shown),
            "data-state": left ? "left" : turn ? "turn" : waits ? "waits" : "ready",
            click: () => this.look(block, warp),
        }, make("b", {}, `block ${block}, warp ${warp}${turn ? " (its turn)" : ""}`), ` ${says}`);
    }

    events({ step, events }) {
        if (!step) return [make("p", {}, "There was none yet.")];
        if (!events.length) return [make("p", {}, "Nothing but arithmetic and control.")];
        return events.map((event) => make("div", {}, make("p", {}, event.says), ...this.drawn(event)));
    }

    drawn(event) {
        if (event.kind === "global") {
            return [make("ol", { class: "sectors" }, ...event.sectors.map(({ array, first, elements, lanes }) =>
                make("li", {}, make("span", {}, `${array}[${first}…${first + elements - 1}]`), this.lanes(lanes))))];
        }
        if (event.kind === "shuffle") {
            const row = (head, values) => make("tr", {}, make("th", { scope: "row" }, head), ...values.map((v) => make("td", {}, v)));
            return [make("div", { class: "wide", tabindex: 0, role: "region", "aria-label": "A shuffle, by lane" },
                make("table", {}, row("before", event.before), row("from lane", event.from), row("after", event.after)))];
        }
        return [];
    }

    // 32 small boxes, filled for the lanes in the mask.
    lanes(mask) {
        const boxes = Array.from({ length: 32 }, (_, lane) => make("i", { class: (mask >>> lane) & 1 ? "in" : null }));
        return make("span", { class: "lanes", "aria-hidden": true }, ...boxes);
    }

    showRegisters({ registers, shown, block, warp, lanes }) {
        const mask = shown && shown[0] === block && shown[1] === warp ? lanes : 0;
        const head = Array.from({ length: 32 }, (_, lane) =>
            make("th", { scope: "col", class: (mask >>> lane) & 1 ? "in" : null }, lane));
        const rows = registers.map(({ name, cpp, type, values }) =>
            make("tr", {}, make("th", { scope: "row" }, make("b", {}, cpp ?? ""), ` ${name} ${type}`),
                ...values.map((value) => make("td", {}, value))));
        const title = shown ? `block ${shown[0]}, warp ${shown[1]}` : "";
        this.registers.replaceChildren(make("table", {}, make("thead", {}, make("tr", {}, make("th", { scope: "col" }, title), ...head)),
            make("tbody", {}, ...rows)));
    }

    showShared({ shared, events }) {
        this.shared.parentElement.hidden = !shared.length;
        const touched = new Set();
        for (const { kind, words } of events) {
            if (kind !== "shared") continue;
            for (const [, first, count] of words) for (let i = 0; i < count; i++) touched.add(first + i);
        }
        const rows = [];
        for (let first = 0; first < shared.length; first += 32) {
            const begins = this.variables.filter(({ offset }) => Math.floor(offset / 128) === first / 32);
            const label = [`${4 * first} B`, ...begins.map(({ name }) => name)].join(" ");
            rows.push(make("tr", {}, make("th", { scope: "row" }, label), ...shared.slice(first, first + 32).map((word, i) =>
                make("td", { class: touched.has(first + i) ? "in" : null }, word ?? "·"))));
        }
        const banks = Array.from({ length: 32 }, (_, bank) => make("th", { scope: "col" }, bank));
        this.shared.replaceChildren(make("table", {}, make("thead", {}, make("tr", {}, make("th", { scope: "col" }, "bank"), ...banks)),
            make("tbody", {}, ...rows)));
    }
}
