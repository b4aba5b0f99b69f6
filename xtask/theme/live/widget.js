// A widget: controls, a drawing and a sentence, all from the module.

class Widget {
    constructor(name) {
        this.name = name;
    }

    async begin(place) {
        const answer = await linrecLive.ask({ do: "widget", name: this.name });
        this.title = answer.title;
        this.inputs = answer.controls.map((control) => this.input(control));
        this.form = make("form", { submit: (event) => event.preventDefault(), input: () => this.change() },
            ...answer.controls.map(({ name }, i) => {
                this.inputs[i].shown = make("output", {}, "");
                return make("label", {}, name, this.inputs[i], this.inputs[i].shown);
            }));
        this.drawing = make("div", { class: "live-drawing" });
        this.says = make("p", { class: "says", role: "status" });
        place.append(make("section", { class: "stepper", "aria-label": answer.title, keydown: (event) => event.stopPropagation() },
            make("p", { class: "title" }, answer.title), this.form, this.drawing, this.says));
        this.show(answer);
    }

    input({ name, kind, value, choices, ...bounds }) {
        if (kind !== "choice") return make("input", { name, type: kind, ...bounds, value, spellcheck: "false" });
        return make("select", { name }, ...choices.map((choice) => make("option", { selected: choice === value }, choice)));
    }

    // Draws at most as often as the screen.
    change() {
        this.changed = true;
        this.drawn ??= (async () => {
            while (this.changed) {
                this.changed = false;
                const values = Object.fromEntries(this.inputs.map(({ name, value }) => [name, value]));
                this.show(await linrecLive.ask({ do: "widget", name: this.name, values }));
                await new Promise(requestAnimationFrame);
            }
        })().finally(() => { this.drawn = null; });
    }

    show({ drawing, says }) {
        this.drawing.innerHTML = drawing;
        this.says.textContent = says;
        for (const input of this.inputs) input.shown.textContent = input.type === "range" ? input.value : "";
    }
}
