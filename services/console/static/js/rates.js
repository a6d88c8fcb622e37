// Rates are made of counters here: how much each has grown since it was last seen, for each second.

const seen = new Map();

// rate notes a counter's value and answers {rate, grown}: smoothed per second, and by how much it has grown since the last call with
// another time. A counter that has fallen far belongs to a process that has started again, and counts from zero; one that has fallen a
// little is a sum of figures that were not taken at the same moment.
export function rate(name, value, at = performance.now()) {
  const before = seen.get(name);
  if (value === undefined) return { rate: before?.rate || 0, grown: 0 };
  if (!before) {
    seen.set(name, { value, at, rate: 0 });
    return { rate: 0, grown: 0 };
  }
  const seconds = (at - before.at) / 1000;
  if (seconds < 0.2) return { rate: before.rate, grown: 0 };
  const grown = value >= before.value ? value - before.value : value < before.value / 2 ? value : 0;
  if (grown === 0) value = Math.max(value, before.value);
  const now = grown / seconds;
  // What stands still is shown as standing still after a few seconds.
  const weight = 1 - Math.exp(-seconds / 2);
  const smooth = before.rate + (now - before.rate) * weight;
  seen.set(name, { value, at, rate: smooth < 0.05 && grown === 0 ? 0 : smooth });
  return { rate: seen.get(name).rate, grown: seconds > 5 ? 0 : grown };
}
