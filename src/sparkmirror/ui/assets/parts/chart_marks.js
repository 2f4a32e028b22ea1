// What is drawn behind and over a chart's lines: gaps with their reason, events with their words, a forecast.
const FONT = (ratio) => `${12 * ratio}px Inter, system-ui, sans-serif`;

/** A hatched band where nothing was recorded, with why. */
function gaps(plot, list, colour, label) {
  const { ctx, bbox } = plot;
  const ratio = devicePixelRatio;
  plot.words = [];
  for (const gap of list) {
    const left = Math.max(bbox.left, plot.valToPos(gap.from_ms / 1000, "x", true));
    const right = Math.min(bbox.left + bbox.width, plot.valToPos(gap.to_ms / 1000, "x", true));
    if (right <= left) continue;
    ctx.save();
    ctx.beginPath();
    ctx.rect(left, bbox.top, right - left, bbox.height);
    ctx.fillStyle = colour("sunken");
    ctx.fill();
    ctx.clip();
    ctx.strokeStyle = colour("line-2");
    ctx.lineWidth = 0.6 * ratio;
    ctx.beginPath();
    for (let x = left - bbox.height; x < right; x += 6 * ratio) {
      ctx.moveTo(x, bbox.top + bbox.height);
      ctx.lineTo(x + bbox.height, bbox.top);
    }
    ctx.stroke();
    ctx.restore();
    words(plot, label, (left + right) / 2, colour);
  }
}

/** Dashed verticals with their words; words that would lie on others are left out (they are in Events). */
function marks(plot, list, colour) {
  const { ctx, bbox } = plot;
  const ratio = devicePixelRatio;
  for (const mark of [...list].sort((a, b) => a.time_ms - b.time_ms)) {
    const x = plot.valToPos(mark.time_ms / 1000, "x", true);
    if (x < bbox.left || x > bbox.left + bbox.width) continue;
    ctx.save();
    ctx.strokeStyle = colour("text-2");
    ctx.lineWidth = ratio;
    ctx.setLineDash([2 * ratio, 3 * ratio]);
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
    ctx.restore();
    words(plot, mark.text, x, colour);
  }
}

/** One line above the plot, centred on x but inside it. */
function words(plot, text, x, colour) {
  const { ctx, bbox } = plot;
  const ratio = devicePixelRatio;
  ctx.save();
  ctx.font = FONT(ratio);
  ctx.fillStyle = colour("text-2");
  ctx.textBaseline = "alphabetic";
  ctx.textAlign = "left";
  const wide = ctx.measureText(text).width;
  const left = Math.min(Math.max(x - wide / 2, bbox.left), bbox.left + bbox.width - wide);
  const room = 12 * ratio;
  const isFree = plot.words.every(([from, to]) => left > to + room || left + wide < from - room);
  if (isFree && wide <= bbox.width) {
    ctx.fillText(text, left, bbox.top - 6 * ratio);
    plot.words.push([left, left + wide]);
  }
  ctx.restore();
}

/** Dashed from the last value to 0, ending in a ring with the time. */
function forecast(plot, ahead, colour) {
  if (!ahead) return;
  const { ctx, bbox } = plot;
  const ratio = devicePixelRatio;
  const [x0, y0] = [plot.valToPos(ahead.from_ms / 1000, "x", true), plot.valToPos(ahead.value, "y", true)];
  const [x1, y1] = [plot.valToPos(ahead.to_ms / 1000, "x", true), plot.valToPos(0, "y", true)];
  if (x1 > bbox.left + bbox.width) return;
  ctx.save();
  ctx.strokeStyle = colour("data-1");
  ctx.lineWidth = 1.6 * ratio;
  ctx.setLineDash([4 * ratio, 4 * ratio]);
  ctx.beginPath();
  ctx.moveTo(x0, y0);
  ctx.lineTo(x1, y1);
  ctx.stroke();
  ctx.setLineDash([]);
  ctx.fillStyle = colour("surface");
  ctx.beginPath();
  ctx.arc(x1, y1, 4 * ratio, 0, 7);
  ctx.fill();
  ctx.stroke();
  ctx.font = FONT(ratio);
  ctx.fillStyle = colour("text-2");
  ctx.textBaseline = "alphabetic";
  ctx.textAlign = "left"; // right of the falling line
  const left = Math.min(x1 + 6 * ratio, bbox.left + bbox.width - ctx.measureText(ahead.text).width);
  ctx.fillText(ahead.text, left, y1 - 10 * ratio);
  ctx.restore();
}

export const shade = { gaps, marks, forecast };
