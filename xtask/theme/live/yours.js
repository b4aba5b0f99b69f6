// The reader's kernel: the PTX, its arguments, and its launch.

// The types of a parameter, by its size in bytes. The address of an array has 8.
const TYPES = { 1: ["u8"], 2: ["u16"], 4: ["u32", "i32", "f32"], 8: ["u64", "i64", "f64"] };
const ELEMENTS = ["f32", "f64", "i32", "u32", "i64", "u64", "u16", "u8"];
// The first number of elements of an array, and the first value of a number.
const COUNT = 256;

class Yours extends Debugger {
    prepare() {
        this.prepared ??= (async () => {
            this.scene = { title: "Your own kernel", sizes: {} };
            this.arrays = [];
            this.file = "PTX";
            this.form = this.choices();
            this.build();
        })();
        return this.prepared;
    }

    async begin(place) {
        await this.prepare();
        this.text.value = place.dataset.yours;
        place.append(this.root);
        await this.read();
        await this.launch();
    }

    choices() {
        this.text = make("textarea", { rows: 12, spellcheck: "false", "aria-label": "PTX", autocapitalize: "off", change: () => this.read() });
        const file = make("input", {
            type: "file", accept: ".ptx,.txt", "aria-label": "PTX from a file",
            change: async () => {
                this.text.value = await file.files[0].text();
                await this.read();
            },
        });
        this.entry = make("select", { "aria-label": "Kernel", change: () => this.showParams() });
        this.params = make("div", { class: "params" });
        const extents = (what, ...first) => ["x", "y", "z"].map((axis, i) =>
            make("input", { type: "number", min: 1, value: first[i], required: true, "aria-label": `${what}, ${axis}` }));
        this.grid = extents("Blocks", 4, 1, 1);
        this.block = extents("Threads of a block", 64, 1, 1);
        this.dynamic = make("input", { type: "number", min: 0, value: 0, required: true });
        const submit = (event) => {
            event.preventDefault();
            this.launch();
        };
        return make("form", { submit, class: "yours", "aria-label": "Kernel, arguments and launch" },
            this.text, make("label", {}, "or from a file", file),
            make("label", {}, "Kernel", this.entry), this.params,
            make("label", {}, "Blocks", ...this.grid), make("label", {}, "Threads of a block", ...this.block),
            make("label", {}, "Bytes of dynamic shared memory", this.dynamic),
            make("datalist", { id: "live-fills" }, ...KINDS.map((value) => make("option", { value }))), make("button", {}, "Run"));
    }

    build() {
        super.build();
        this.link.remove();
        this.held = make("div", { class: "wide arrays", tabindex: 0, role: "region", "aria-label": "Arrays" });
        this.root.append(make("section", {}, make("p", { class: "head" }, "Arrays, their first elements"), this.held));
    }

    // Lists the kernels. A fault in the PTX is shown at the place for faults of a launch.
    async read() {
        try {
            const { kernels, unrounded } = await linrecLive.ask({ do: "kernels", ptx: this.text.value });
            this.kernels = kernels;
            this.unrounded = unrounded;
            const chosen = this.entry.value;
            this.entry.replaceChildren(...kernels.map(({ name }) => make("option", { selected: name === chosen }, name)));
            this.showParams();
            return true;
        } catch (error) {
            // The parameters stay, with the reader's values.
            this.fail(error);
            return false;
        }
    }

    // A parameter of the same name and size keeps its value.
    showParams() {
        this.given ??= new Map();
        const { params } = this.kernels[this.entry.selectedIndex];
        this.rows = params.map((param) => {
            const key = `${param.name} ${param.bytes}`;
            if (!this.given.has(key)) this.given.set(key, this.param(param));
            return this.given.get(key);
        });
        this.params.replaceChildren(...this.rows.map(({ row }) => row));
    }

    param({ name, type, bytes }) {
        const numbers = TYPES[bytes] ?? [];
        const kinds = [...(bytes === 8 ? ELEMENTS.map((element) => `array of ${element}`) : []), ...numbers, ...(bytes === 8 ? ["null"] : [])];
        // Floats are declared as floats, and 8 bytes are usually an address.
        const usual = numbers.includes(type) ? type : numbers[0];
        const kind = make("select", { "aria-label": `${name}: what it is`, change: () => show() },
            ...kinds.map((kind) => make("option", { selected: bytes !== 8 && kind === usual }, kind)));
        const count = make("input", { type: "number", min: 0, value: COUNT, "aria-label": `${name}: number of elements` });
        const fill = make("input", { type: "text", value: "noise", list: "live-fills", spellcheck: "false", placeholder: "not written", "aria-label": `${name}: values` });
        const value = make("input", { type: "text", value: usual === "f32" ? "0.5" : COUNT, spellcheck: "false", "aria-label": `${name}: value` });
        const show = () => {
            const array = kind.value.startsWith("array");
            count.hidden = fill.hidden = !array;
            value.hidden = array || !kind.value || kind.value === "null";
        };
        show();
        // In a module of several kernels, names begin with the kernel's name.
        const row = make("div", {}, make("b", {}, name), kind, count, fill, value,
            kinds.length ? "" : `${bytes} bytes: a parameter of this size cannot be given here`);
        const line = () => {
            if (kind.value === "null") return `${name}: null`;
            if (!kind.value.startsWith("array")) return `${name}: ${kind.value} = ${value.value}`;
            const values = fill.value.trim();
            return `${name}: ${kind.value.slice("array of ".length)}[${count.value}]${values && ` = ${values}`}`;
        };
        return { row, line };
    }

    // If this launch cannot begin, the last one is not shown in its place.
    async launch() {
        this.root.classList.remove("ran");
        if (await this.read()) await this.open();
        this.root.dataset.launched = "";
    }

    async open() {
        const extents = (inputs) => inputs.map(({ value }) => String(Math.trunc(Number(value))));
        const scene = {
            ptx: this.text.value, symbol: this.entry.value, sources: {}, arguments: this.rows.map(({ line }) => line()),
            grid: extents(this.grid), block: extents(this.block), dynamic_shared: this.dynamic.value,
        };
        this.variant = scene;
        try {
            const opened = await linrecLive.ask({ do: "open", id: this.id, scene, step: END });
            this.length = opened.length;
            this.variables = opened.shared;
            this.view = opened.view;
            this.file = null;
            this.root.classList.add("ran");
            this.show();
            await this.shown;
        } catch (error) {
            this.fail(error);
        }
    }

    // The arrays take the place of a link, since no address has the PTX.
    showLink() {
        this.shown = this.showArrays();
    }

    async showArrays() {
        const { arrays } = await linrecLive.ask({ do: "arrays", id: this.id });
        this.held.replaceChildren(make("table", {}, make("tbody", {}, ...arrays.map(({ name, count, values }) =>
            make("tr", {}, make("th", { scope: "row" }, make("b", {}, name), ` ${count}`), ...values.map((value) => make("td", {}, value)))))));
        if (this.unrounded && !this.view.ahead) {
            this.says.append(` (${this.unrounded} additions, subtractions or multiplications of the PTX do not say how they round: a GPU's driver may fuse them, and then its bits differ.)`);
        }
    }
}
