// When requests are due: a Poisson process, decided before the run and never by the server's speed.

/** mulberry32: a small seeded generator of uniform numbers in [0, 1), so that a run can be repeated. */
function uniform(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}

/**
 * Arrival times in seconds from the start, ascending: cumulated exponential gaps of mean 1/rate, up to the duration.
 * Their count is Poisson distributed too, as it is for users who know nothing of each other.
 */
export function arrivals({ rate, seconds, seed }) {
  if (!(rate > 0) || !(seconds > 0)) {
    throw new Error(`RATE and SECONDS must be above 0, not ${rate} and ${seconds}`);
  }
  const next = uniform(seed);
  const times = [];
  for (let time = -Math.log(1 - next()) / rate; time < seconds; time -= Math.log(1 - next()) / rate) {
    times.push(time);
  }
  return times;
}
