"use strict";
// Figures that turn: points [trial][time][3] as 16-bit integers, drawn on a plain canvas, back to front.
(() => {
  const decode = (text) => {
    const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
    return new Int16Array(bytes.buffer, 0, bytes.length >> 1);
  };
  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  function viewer(figure) {
    const data = JSON.parse(document.getElementById(figure.dataset.rings).textContent);
    const points = decode(data.points);
    const canvas = figure.querySelector("canvas"), slider = figure.querySelector("input"), label = figure.querySelector("output");
    const play = figure.querySelector("[data-action=play]"), context = canvas.getContext("2d");
    const steps = data.time.length, count = data.colour.length, home = { azimuth: 0.7, elevation: 0.45, zoom: 1 };
    const view = { ...home };
    let timer = null, waiting = false;

    function draw() {
      waiting = false;
      const ratio = Math.min(window.devicePixelRatio || 1, 2);
      const width = Math.max(1, Math.round(canvas.clientWidth * ratio)), height = Math.max(1, Math.round(canvas.clientHeight * ratio));
      if (canvas.width !== width || canvas.height !== height) { canvas.width = width; canvas.height = height; }
      const step = Number(slider.value), scale = (0.4 * Math.min(width, height) * view.zoom) / 2000;
      const ca = Math.cos(view.azimuth), sa = Math.sin(view.azimuth), ce = Math.cos(view.elevation), se = Math.sin(view.elevation);
      const project = (x, y, z) => {
        const across = ca * x - sa * y, depth = sa * x + ca * y;
        return [width / 2 + scale * across, height / 2 - scale * (ce * z - se * depth), se * z + ce * depth];
      };
      context.clearRect(0, 0, width, height);
      context.lineWidth = ratio; context.strokeStyle = css("--line"); context.fillStyle = css("--soft");
      context.font = `${12 * ratio}px system-ui, sans-serif`;
      [[2100, 0, 0], [0, 2100, 0], [0, 0, 2100]].forEach((end, k) => {
        const [x0, y0] = project(0, 0, 0), [x1, y1] = project(...end);
        context.beginPath(); context.moveTo(x0, y0); context.lineTo(x1, y1); context.stroke();
        context.fillText(`PC${k + 1}`, x1 + 3 * ratio, y1 - 3 * ratio);
      });
      const placed = [];
      for (let i = 0; i < count; i++) {
        const at = (i * steps + step) * 3;
        placed.push([...project(points[at], points[at + 1], points[at + 2]), i]);
      }
      placed.sort((a, b) => b[2] - a[2]);
      for (const [x, y, depth, i] of placed) {
        const size = ratio * Math.max(1.6, 3.4 - depth / 2500);
        context.globalAlpha = Math.min(1, Math.max(0.35, 0.8 - depth / 6000));
        context.fillStyle = context.strokeStyle = data.colour[i];
        if (data.swap[i]) {
          context.lineWidth = 1.6 * ratio; context.beginPath();
          context.moveTo(x - size, y - size); context.lineTo(x + size, y + size); context.moveTo(x + size, y - size); context.lineTo(x - size, y + size);
          context.stroke();
        } else if (data.fixed[i]) {
          context.beginPath(); context.arc(x, y, size, 0, 2 * Math.PI); context.fill();
        } else context.fillRect(x - size * 0.85, y - size * 0.85, size * 1.7, size * 1.7);
      }
      context.globalAlpha = 1;
      const text = `${data.time[step]}, ${data.epoch[step]}`;
      if (label.textContent !== text) { label.textContent = text; slider.setAttribute("aria-valuetext", text); }
      figure.dataset.view = `${view.azimuth.toFixed(3)} ${view.elevation.toFixed(3)} ${step}`;
    }
    const redraw = () => { if (!waiting) { waiting = true; requestAnimationFrame(draw); } };
    const turn = (across, up) => {
      view.azimuth += across;
      view.elevation = Math.max(-1.55, Math.min(1.55, view.elevation + up));
      redraw();
    };
    const stop = () => { clearInterval(timer); timer = null; play.textContent = "Play"; play.setAttribute("aria-pressed", "false"); };
    const actions = {
      left: () => turn(-0.2, 0), right: () => turn(0.2, 0), up: () => turn(0, 0.15), down: () => turn(0, -0.15),
      reset: () => { Object.assign(view, home); redraw(); },
      play: () => {
        if (timer) return stop();
        play.textContent = "Pause"; play.setAttribute("aria-pressed", "true");
        if (Number(slider.value) >= steps - 1) slider.value = 0;
        timer = setInterval(() => { if (Number(slider.value) >= steps - 1) stop(); else { slider.value = Number(slider.value) + 1; redraw(); } }, 120);
      },
    };
    figure.querySelectorAll("[data-action]").forEach((button) => button.addEventListener("click", () => actions[button.dataset.action]()));
    slider.addEventListener("input", () => { if (timer) stop(); redraw(); });
    canvas.addEventListener("keydown", (event) => {
      const keys = { ArrowLeft: "left", ArrowRight: "right", ArrowUp: "up", ArrowDown: "down", Home: "reset" };
      if (event.key === "+" || event.key === "=") { view.zoom = Math.min(4, view.zoom * 1.15); redraw(); }
      else if (event.key === "-") { view.zoom = Math.max(0.4, view.zoom / 1.15); redraw(); }
      else if (keys[event.key]) actions[keys[event.key]]();
      else return;
      event.preventDefault();
    });
    let held = null;
    canvas.addEventListener("pointerdown", (event) => { held = [event.clientX, event.clientY]; canvas.setPointerCapture(event.pointerId); });
    canvas.addEventListener("pointermove", (event) => {
      if (!held) return;
      turn((event.clientX - held[0]) * 0.01, (event.clientY - held[1]) * 0.01);
      held = [event.clientX, event.clientY];
    });
    for (const end of ["pointerup", "pointercancel"]) canvas.addEventListener(end, () => { held = null; });
    new ResizeObserver(redraw).observe(canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
    draw();
  }
  document.querySelectorAll("[data-rings]").forEach(viewer);

  document.querySelectorAll("[data-copy]").forEach((button) => button.addEventListener("click", async () => {
    const source = document.getElementById(button.dataset.copy), status = button.parentElement.querySelector("[role=status]");
    try { await navigator.clipboard.writeText(source.textContent); status.textContent = "Copied."; }
    catch { getSelection().selectAllChildren(source); status.textContent = "Selected; copy it with your keyboard."; }
  }));
})();
