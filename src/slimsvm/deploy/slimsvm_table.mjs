
// A table: encodes the columns of rows, scores them by each model, and averages the predictions.
const GONE = new Set(["", "?", "-", "na", "n/a", "nan", "nat", "none", "null", "<na>", "<null>", "#n/a"]);
const DAY = 864e5, TURN = 2 * Math.PI;

export class SlimTable {
  // `module` is slimsvm_predict.wasm, as bytes; `facts` are columns and models.
  static async load(module, facts) {
    const runtime = await WebAssembly.compile(module);
    const kernelOf = async ({ file }) => (file ? await SlimModel.load(runtime, bytesOf(file)) : null);
    return new SlimTable(facts, await Promise.all(facts.models.map(kernelOf)));
  }

  constructor(facts, kernels) {
    this.facts = facts;
    this.kernels = kernels;
    this.columns = facts.columns.map(({ name }) => name);
    this.labels = facts.classes ?? [];
    for (const column of facts.columns) if (column.places) column.places = new Map(column.places);
  }

  // For each row, an object by names of columns or an array in the order of training, its label or number.
  predict(rows) {
    if (this.labels.length) return this.probabilities(rows).map((p) => this.labels[p.indexOf(Math.max(...p))]);
    return this.#means(rows).map(([value]) => this.facts.mean + this.facts.spread * value);
  }

  // For each row the probabilities of the labels in their order; an error where numbers are predicted.
  probabilities(rows) {
    if (!this.labels.length) throw new Error("the model predicts numbers, which have no probabilities");
    return this.#means(rows).map((p) => p.map((value) => value / p.reduce((sum, each) => sum + each, 0)));
  }

  #means(rows) {
    const encoded = rows.map((row) => this.#encode(row)), n = this.labels.length;
    const found = this.facts.models.map((model, m) => {
      const seen = encoded.map((x) => x.slice(0, model.n)); // straight numbers, which are last, are a linear model's
      const scores = model.file ? this.kernels[m].scores(seen) : seen.map((x) => additive(x, model));
      return n ? scores.map((own) => coupled(own.map((score, c) => logOdds(score, model.calibration[c])), n)) : scores;
    });
    const mean = (i, c) => found.reduce((sum, own, m) => sum + this.facts.models[m].weight * own[i][c], 0);
    return encoded.map((_, i) => found[0][i].map((_, c) => mean(i, c)));
  }

  #encode(row) {
    const straight = [];
    const parts = this.facts.columns.map((column, j) => {
      if (column.kind === "left out") return [];
      if (!Array.isArray(row) && !Object.hasOwn(row, column.name)) throw new Error(`column '${column.name}' is missing`);
      const value = Array.isArray(row) ? row[j] : row[column.name];
      const line = column.straight; // linear models see a number itself, too
      if (line) straight.push(interpolated(isGone(value) ? line.middle : Number(value), line));
      return KINDS_OF_COLUMNS[column.kind](value, column);
    });
    const features = [...parts.flat(), ...straight].map(Math.fround);
    return features.length ? features : [0];
  }
}

const isGone = (value) => value === null || value === undefined || Number.isNaN(value)
  || (typeof value === "string" && GONE.has(value.trim().toLowerCase()));

function interpolated(x, { values, deviates }) {
  const last = values.length - 1;
  if (x <= values[0]) return deviates[0];
  if (x >= values[last]) return deviates[last];
  let at = 0;
  for (let end = last; end - at > 1;) {
    const middle = (at + end) >> 1;
    if (values[middle] <= x) at = middle; else end = middle;
  }
  return deviates[at] + (x - values[at]) * (deviates[at + 1] - deviates[at]) / (values[at + 1] - values[at]);
}

// The place of a level, of a missing value too; n where it is none of them.
function placeOf(value, { places, n, missing }) {
  if (isGone(value)) return missing ?? n;
  const text = typeof value === "boolean" ? (value ? "True" : "False") : String(value).trim();
  return places.get(text) ?? n;
}

// What a column's value becomes.
const KINDS_OF_COLUMNS = {
  numbers(value, column) {
    const gone = isGone(value), number = Number(value);
    if (!gone && !Number.isFinite(number)) throw new Error(`column '${column.name}' has ${value}, where a number belongs`);
    return [gone ? 0 : interpolated(number, column), ...(column.flag ? [Number(gone)] : [])];
  },
  times(value, column) {
    const gone = isGone(value), day = gone ? 0 : Number(value) / DAY; // of a Date, or of milliseconds since 1970
    if (!Number.isFinite(day)) throw new Error(`column '${column.name}' has ${value}, where a Date belongs`);
    const year = Date.UTC(new Date(day * DAY).getUTCFullYear(), 0, 1) / DAY;
    const turns = { year: (day - year) / 365.2425, week: day / 7, day };
    const waves = column.cycles.flatMap((cycle) => [Math.sin(TURN * turns[cycle]), Math.cos(TURN * turns[cycle])]);
    const found = [interpolated(day, column), ...waves].map((each) => (gone ? 0 : each));
    return column.flag ? [...found, Number(gone)] : found;
  },
  levels(value, column) {
    const place = placeOf(value, column);
    return Array.from({ length: column.n }, (_, k) => Number(k === place));
  },
  "many levels": (value, column) => column.means[placeOf(value, column)],
};

// Scores by what is taken as it is, and cubic splines; de Boor: A Practical Guide to Splines, 1978, the recurrence over
// degrees.
function additive(x, { weights, intercept, knots, flags }) {
  const scores = [...intercept], n = knots.length - 4, end = knots.at(-1);
  const add = (value, place) => weights[place].forEach((weight, c) => (scores[c] += value * weight));
  let place = 0;
  x.forEach((value, f) => flags[f] && add(value, place++));
  for (const [f, given] of x.entries()) {
    if (flags[f]) continue;
    const value = Math.min(Math.max(given, -end), end);
    let at = 3, values = [1];
    while (at < n - 1 && value >= knots[at + 1]) ++at;
    for (let degree = 1; degree <= 3; ++degree) {
      const raised = [];
      let carried = 0;
      for (const [r, own] of values.entries()) {
        const above = knots[at + r + 1], below = knots[at + r + 1 - degree], part = own / (above - below);
        raised.push(carried + (above - value) * part);
        carried = (value - below) * part;
      }
      values = [...raised, carried];
    }
    values.forEach((own, r) => add(own, place + at - 3 + r));
    place += n;
  }
  return scores;
}

function logOdds(score, [u, w, c, b]) {
  const size = Math.abs(score), flat = Math.LN2 - Math.log1p(Math.exp(-size));
  const [far, near] = score < 0 ? [w, u] : [u, w];
  const odds = far * (size - flat) + near * flat + c * Math.log1p(size);
  return (score < 0 ? -odds : odds) + b;
}

// p_i ∝ 1 / (1 + Σ_j e^{-z_ij}), z_ij the log odds of class i against j; of two classes there is one z, of the second.
function coupled(z, n) {
  if (n === 2) return [1 / (1 + Math.exp(z[0])), 1 / (1 + Math.exp(-z[0]))];
  const against = Array.from({ length: n }, () => [0]);
  for (let a = 0, pair = 0; a < n; ++a) {
    for (let b = a + 1; b < n; ++b, ++pair) {
      against[a].push(-z[pair]);
      against[b].push(z[pair]);
    }
  }
  const costs = against.map((own) => {
    const most = Math.max(...own);
    return most + Math.log(own.reduce((sum, each) => sum + Math.exp(each - most), 0));
  });
  const least = Math.min(...costs), shares = costs.map((cost) => Math.exp(least - cost));
  const total = shares.reduce((sum, share) => sum + share, 0);
  return shares.map((share) => share / total);
}
