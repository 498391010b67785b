// Scores rows by a model of slimsvm, in a browser or in Node, by the C runtime compiled to WebAssembly.
const KINDS = "binary,classes,pairs,labels,regression,one class,ordinal,ranking,sequences,counts,targets,quantiles".split(",");
const OF_ARRAYS = new Set(["labels", "targets", "quantiles"]);
const OF_LABELS = new Set(["binary", "classes", "pairs", "ordinal", "sequences"]);
const ROWS_BYTES = 56, TYPE = 12, N_ROWS = 24, N_FEATURES = 32, LENGTHS = 40, N_SEQUENCES = 48;

export class SlimModel {
  // The model of a .slim file's bytes; `module` is slimsvm_predict.wasm, as bytes or compiled.
  static async load(module, bytes) {
    const loaded = await WebAssembly.instantiate(module, {});
    return new SlimModel((loaded.instance ?? loaded).exports, bytes);
  }

  constructor(runtime, bytes) {
    runtime._initialize();
    this.runtime = runtime;
    const place = this.#take(bytes.length);
    new Uint8Array(runtime.memory.buffer).set(bytes, place);
    this.address = runtime.slimsvm_load_memory(place, bytes.length);
    runtime.free(place);
    if (!this.address) throw this.#error();
    const size = (name) => Number(runtime[`slimsvm_n_${name}`](this.address));
    this.kind = KINDS[runtime.slimsvm_kind(this.address)];
    [this.nFeatures, this.nVectors, this.nScores, this.nPredictions, this.nProbabilities] =
      ["features", "vectors", "scores", "predictions", "probabilities"].map(size);
    this.labels = Array.from({ length: size("labels") }, (_, i) => {
      const text = runtime.slimsvm_label_text(this.address, BigInt(i));
      return text ? this.#text(text) : runtime.slimsvm_label_number(this.address, BigInt(i));
    });
  }

  // Scores of rows, an array of arrays or one typed array: for each row an array of nScores numbers. Of sequences one
  // after another `lengths` are the rows of each.
  scores(rows, lengths = null) {
    return this.#answer("slimsvm_scores", rows, lengths, this.nScores);
  }

  // Probabilities of the labels in their order, nProbabilities for each row; an error where the model has none.
  probabilities(rows) {
    return this.#answer("slimsvm_probabilities", rows, null, this.nProbabilities);
  }

  // For each row its label or number, or of several an array (of labels 0 and 1).
  predict(rows, lengths = null) {
    const found = this.#answer("slimsvm_predict", rows, lengths, this.nPredictions);
    if (this.nPredictions > 1 || OF_ARRAYS.has(this.kind)) return found;
    return found.map(([value]) => (OF_LABELS.has(this.kind) && this.labels.length ? this.labels[value] : value));
  }

  #answer(name, rows, lengths, width) {
    const { runtime, nFeatures } = this;
    const values = ArrayBuffer.isView(rows) ? Float64Array.from(rows) : Float64Array.from(rows.flat());
    const n = ArrayBuffer.isView(rows) ? rows.length / nFeatures : rows.length;
    if (values.length !== n * nFeatures || !Number.isInteger(n)) {
      throw new Error(`rows must have ${nFeatures} features each, found ${values.length} numbers for ${n} rows`);
    }
    const places = [];
    const take = (size) => (places.push(this.#take(size)), places.at(-1));
    try {
      const [row, given, out] = [ROWS_BYTES, values.byteLength, 8 * n * width].map(take);
      const ends = lengths && take(8 * lengths.length);
      const buffer = runtime.memory.buffer; // only now: memory that grows is another one
      new Float64Array(buffer, given, values.length).set(values);
      new Uint8Array(buffer, row, ROWS_BYTES).fill(0);
      const view = new DataView(buffer, row);
      view.setUint32(0, given, true);
      view.setInt32(TYPE, 1, true); // float64
      view.setBigInt64(N_ROWS, BigInt(n), true);
      view.setBigInt64(N_FEATURES, BigInt(nFeatures), true);
      if (lengths) {
        new BigInt64Array(buffer, ends, lengths.length).set(Array.from(lengths, BigInt));
        view.setUint32(LENGTHS, ends, true);
        view.setBigInt64(N_SEQUENCES, BigInt(lengths.length), true);
      }
      if (runtime[name](this.address, row, 1, out)) throw this.#error();
      const found = new Float64Array(runtime.memory.buffer, out, n * width);
      return Array.from({ length: n }, (_, i) => Array.from(found.subarray(i * width, (i + 1) * width)));
    } finally {
      places.forEach((place) => runtime.free(place));
    }
  }

  #take(size) {
    const place = this.runtime.malloc(Math.max(size, 8));
    if (!place) throw new Error("there is no memory left");
    return place;
  }

  #error() {
    return new Error(this.#text(this.runtime.slimsvm_last_error()));
  }

  #text(place) {
    const bytes = new Uint8Array(this.runtime.memory.buffer, place);
    return new TextDecoder().decode(bytes.slice(0, bytes.indexOf(0)));
  }
}

export const bytesOf = (base64) => Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
