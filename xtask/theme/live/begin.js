// Puts the live part below its figure when the reader comes near.

// At the address of a state, the debugger begins before the page has been read.
const first = /^[\w-]+$/.test(linked()?.get("live") ?? "") ? new Debugger(linked().get("live")) : null;
first?.prepare().catch(() => {}); // The debugger shows the error in its place in the page.

const made = ({ dataset: { scene, widget, puzzle } }) => {
    if (puzzle) return new Puzzle(puzzle);
    if (widget) return new Widget(widget);
    if (!scene) return new Yours();
    return scene === first?.name ? first : new Debugger(scene);
};

// A figure whose live part fails stays, with the error.
const begin = (place) => made(place).begin(place).then(() => {
    place.dataset.ready = "";
    performance.mark("live");
}).catch((error) => {
    place.dataset.ready = "";
    place.append(make("p", { class: "live-note" }, `This figure could not be made live here: ${error.message}.`));
});

const near = new IntersectionObserver((entries) => {
    for (const { isIntersecting, target } of entries) {
        if (!isIntersecting) continue;
        near.unobserve(target);
        begin(target);
    }
}, { rootMargin: "800px" });

// Looks at the places that have been read since the last look.
const look = () => {
    for (const place of document.querySelectorAll(".live:not([data-seen])")) {
        // The figure of the place may not have been read yet.
        if (document.readyState === "loading" && !place.nextSibling) continue;
        place.dataset.seen = "";
        if (first && place.dataset.scene === first.name) begin(place);
        else near.observe(place);
    }
};
// Looks as soon as a place has been read, long before the page's other scripts have run.
const meanwhile = () => {
    look();
    if (document.readyState === "loading") requestAnimationFrame(meanwhile);
    else showProgress();
};
meanwhile();
document.addEventListener("DOMContentLoaded", meanwhile);
