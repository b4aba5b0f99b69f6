// Puts what is live below each figure that has it, when it comes near.

// At the address of a state it all begins before the page has been read.
const first = /^[\w-]+$/.test(linked()?.get("live") ?? "") ? new Debugger(linked().get("live")) : null;
first?.prepare().catch(() => {}); // its place in the page is told

const made = ({ dataset: { scene, widget, puzzle } }) => {
    if (puzzle) return new Puzzle(puzzle);
    if (widget) return new Widget(widget);
    if (!scene) return new Yours();
    return scene === first?.name ? first : new Debugger(scene);
};

// A figure that cannot be made live stays, and says why.
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

// At what has been read of the page by now, and has not been looked at.
const look = () => {
    for (const place of document.querySelectorAll(".live:not([data-seen])")) {
        // Its own figure may be still to come.
        if (document.readyState === "loading" && !place.nextSibling) continue;
        place.dataset.seen = "";
        if (first && place.dataset.scene === first.name) begin(place);
        else near.observe(place);
    }
};
// As soon as a place has been read, which is long before the page's other scripts have run.
const meanwhile = () => {
    look();
    if (document.readyState === "loading") requestAnimationFrame(meanwhile);
    else showProgress();
};
meanwhile();
document.addEventListener("DOMContentLoaded", meanwhile);
