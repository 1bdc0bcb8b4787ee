"use strict";
// Draws the figures stored as JSON in the page, in the colours of the reader's theme, and again when it changes.
(() => {
  const figures = JSON.parse(document.getElementById("figures").textContent);
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  // The buttons are listed, not left to the library: some of its own would open a web site.
  const buttons = [["toImage", "zoom2d", "pan2d", "resetScale2d"]];
  const config = { responsive: true, displaylogo: false, showSendToCloud: false, modeBarButtons: buttons };

  const themed = (layout, width) => {
    const css = getComputedStyle(document.documentElement);
    const colour = (name) => css.getPropertyValue(name).trim();
    const out = {
      ...layout,
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      font: { color: colour("--text"), size: 12.5, family: "system-ui, -apple-system, 'Segoe UI', Arial, sans-serif" },
      hoverlabel: { bgcolor: colour("--panel"), bordercolor: colour("--line"), font: { color: colour("--text") }, namelength: -1 },
      modebar: { bgcolor: "rgba(0,0,0,0)", color: colour("--soft"), activecolor: colour("--link") },
      margin: { l: 60, r: 16, t: 34, b: 52, ...(layout.margin || {}) },
    };
    for (const key of Object.keys(out).filter((name) => /^[xy]axis\d*$/.test(name))) {
      out[key] = { automargin: true, gridcolor: colour("--grid"), linecolor: colour("--line"), zeroline: false, ...out[key] };
    }
    if (width < 640 && !(layout.legend || {}).orientation) {
      out.legend = { ...out.legend, orientation: "h", x: 0, y: 1.03, yanchor: "bottom" };
    }
    return out;
  };

  const draw = () => {
    for (const [name, figure] of Object.entries(figures)) {
      const place = document.getElementById(name);
      Plotly.react(place, figure.data, themed(figure.layout, place.clientWidth), config);
    }
  };
  draw();
  dark.addEventListener("change", draw);
})();
