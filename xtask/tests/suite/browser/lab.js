// The requests of the test in JupyterLab: commands of JupyterLab, and the visible outputs.
window.lab = (() => {
  const panel = () => window.jupyterapp.shell.currentWidget;
  const execute = (command) => window.jupyterapp.commands.execute(command);
  const cells = () => Array.from(panel().content.widgets).filter((cell) => cell.model.type === "code");
  const outputs = (cell) => Array.from({ length: cell.model.outputs.length }, (_, at) => cell.model.outputs.get(at).toJSON());
  let done = false;
  return {
    isReady: () =>
      Boolean(panel()?.content?.model) &&
      panel().sessionContext?.session?.kernel?.name === "rust" &&
      panel().sessionContext.session.kernel.status === "idle",
    clear: () => execute("notebook:clear-all-cell-outputs"),
    run: () => {
      done = false;
      execute("notebook:run-all-cells").then(() => (done = true));
      return true;
    },
    isDone: () => done && panel().sessionContext.session.kernel.status === "idle",
    seen: async () => {
      // Cells far down are drawn when they come into view.
      for (const cell of panel().content.widgets) {
        await panel().content.scrollToItem(panel().content.widgets.indexOf(cell));
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
      const drawn = (element) => element.getBoundingClientRect().width > 100;
      const all = (selector) => Array.from(panel().node.querySelectorAll(selector)).filter(drawn).length;
      return {
        unfinished: cells().filter((cell) => cell.model.executionCount === null).length,
        errors: cells().flatMap(outputs).filter((output) => output.output_type === "error" || output.name === "stderr"),
        figures: all('.jp-OutputArea img[src^="data:image/svg"], .jp-OutputArea .jp-RenderedSVG svg'),
        tables: all(".jp-OutputArea table"),
      };
    },
    stop: async (token) => {
      const answer = await fetch("/api/shutdown", { method: "POST", headers: { Authorization: `token ${token}` } });
      return answer.status;
    },
  };
})();
true;
