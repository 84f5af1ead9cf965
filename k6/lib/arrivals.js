// When requests are due: a Poisson process, decided before the run and never by the server's speed.

/** mulberry32: a small seeded generator of uniform numbers in [0, 1), so that a run can be repeated. */
export function uniform(seed) {
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
  return arrivalsOf([{ rate, seconds }], seed);
}

/**
 * The same for phases of different rates, one after the other. A gap that reaches into the next phase is stretched or
 * shortened by the ratio of the rates (time change of a Poisson process), so the change of rate is exact.
 */
export function arrivalsOf(phases, seed) {
  for (const { rate, seconds } of phases) {
    if (!(rate > 0) || !(seconds > 0)) {
      throw new Error(`RATE and SECONDS must be above 0, not ${rate} and ${seconds}`);
    }
  }
  const next = uniform(seed);
  const times = [];
  let time = 0;
  let begin = 0;
  let gap = -Math.log(1 - next()); // in arrivals expected, not seconds: independent of the rate
  for (const { rate, seconds } of phases) {
    const end = begin + seconds;
    while (time + gap / rate < end) {
      time += gap / rate;
      times.push(time);
      gap = -Math.log(1 - next());
    }
    gap -= (end - time) * rate;
    time = end;
    begin = end;
  }
  return times;
}

/** Index of the phase that a time falls into. */
export function phaseAt(phases, time) {
  let end = 0;
  for (let index = 0; index < phases.length - 1; index += 1) {
    end += phases[index].seconds;
    if (time < end) {
      return index;
    }
  }
  return phases.length - 1;
}
