// Exact probabilities: {n, e} is n / 2**e, n a BigInt. Printed as the command line prints them.
// Each function here is that of analyzer/model/probability.py or analyzer/reports/numbers.py.

export const NEVER = { n: 0n, e: 0 };
export const ALWAYS = { n: 1n, e: 0 };

/** Return the numerator over 2**exponent, an exponent no less than its own. */
const over = (x, exponent) => (exponent === x.e ? x.n : x.n << BigInt(exponent - x.e));

/** Return a negative number, 0 or a positive one, as a is below, equal to or above b. */
export function compare(a, b) {
  const e = Math.max(a.e, b.e);
  const x = over(a, e);
  const y = over(b, e);
  return x < y ? -1 : x > y ? 1 : 0;
}

export const isZero = (x) => x.n === 0n;
export const isOne = (x) => compare(x, ALWAYS) === 0;
export const equal = (a, b) => compare(a, b) === 0;
export const least = (a, b) => (compare(b, a) < 0 ? b : a);
export const most = (a, b) => (compare(b, a) > 0 ? b : a);
/** Return the probability that it does not happen. */
export const not = (x) => ({ n: (1n << BigInt(x.e)) - x.n, e: x.e });
export const times = (a, b) => ({ n: a.n * b.n, e: a.e + b.e });

/** Return the sum, at most 1. */
export function cappedSum(parts) {
  let e = 0;
  for (const x of parts) if (x.e > e) e = x.e;
  let n = 0n;
  for (const x of parts) n += over(x, e);
  return n >= 1n << BigInt(e) ? ALWAYS : { n, e };
}

const bits = (n) => {
  const hex = n.toString(16);
  return 4 * (hex.length - 1) + (32 - Math.clz32(parseInt(hex[0], 16)));
};
/** Return the number without factors 2 that numerator and denominator share. */
function reduced(x) {
  if (x.n === 0n) return NEVER;
  let { n, e } = x;
  let step = 1n;
  while (step < BigInt(e)) step <<= 1n;
  for (; step; step >>= 1n) {
    while (BigInt(e) >= step && (n & ((1n << step) - 1n)) === 0n) {
      n >>= step;
      e -= Number(step);
    }
  }
  return { n, e };
}

/** Return the nearest float. */
export function toFloat(x) {
  if (x.n === 0n) return 0;
  const more = bits(x.n) - 64;
  if (more <= 0) return Number(x.n) * 2 ** -x.e;
  // The first digits, and that others follow, tell on which side of a half it is.
  const rest = (x.n & ((1n << BigInt(more)) - 1n)) !== 0n;
  return Number((x.n >> BigInt(more)) | (rest ? 1n : 0n)) * 2 ** (more - x.e);
}

/** Return a float with digits behind the point, halves to even, as Python's format does. */
function fixed(number, digits) {
  const shown = number.toFixed(digits);
  // A tie ends in a quarter or in three: of these toFixed takes the larger.
  return digits === 1 && (number * 4) % 4 === 1 ? (Math.floor(number * 10) / 10).toFixed(1) : shown;
}

/** Return the percentage of one digit that is next below x or, if up, next above. */
function directed(x, up) {
  const one = 1n << BigInt(x.e);
  let whole = (x.n * 1000n) / one;
  const rest = x.n * 1000n - whole * one;
  const slack = (1000n << BigInt(x.e)) >> 20n;
  if (up ? rest > slack : rest + slack >= one) whole += 1n;
  return `${whole / 10n}.${whole % 10n}`;
}

/** Return `33.3%`, to nearest or as `directed`; what is not 0 or 1 is never rounded to it. */
export function percent(x, up = null) {
  if (isZero(x)) return "0.0%";
  if (isOne(x)) return "100.0%";
  const shown = up === null ? fixed(100 * toFloat(x), 1) : directed(x, up);
  if (Number(shown) === 0) return "<0.1%";
  if (Number(shown) >= 100) return ">99.9%";
  return `${shown}%`;
}

/** Return `50.0%`, or `20.0 to 50.0%` where only bounds are known, rounded outwards. */
export function boundsPercent([lower, upper]) {
  if (equal(lower, upper)) return percent(lower);
  return `${percent(lower, false).replace(/%$/, "")} to ${percent(upper, true)}`;
}

/** Return the fraction nearest to a float, with a denominator of at most `limit`. */
function nearestFraction(number, limit) {
  let e = 0;
  let scaled = number;
  while (scaled !== Math.floor(scaled)) {
    scaled *= 2;
    e += 1;
  }
  const numerator = BigInt(scaled);
  const denominator = 1n << BigInt(e);
  const largest = BigInt(limit);
  if (denominator <= largest) return [numerator, denominator];
  let rest = numerator;
  let divisor = denominator;
  let before = [0n, 1n];
  let last = [1n, 0n];
  let room = 0n;
  for (;;) {
    const whole = rest / divisor;
    const remainder = rest % divisor;
    room = last[1] ? (largest - before[1]) / last[1] : whole;
    if (whole > room) break;
    [before, last] = [last, [before[0] + whole * last[0], before[1] + whole * last[1]]];
    [rest, divisor] = [divisor, remainder];
  }
  const between = [before[0] + room * last[0], before[1] + room * last[1]];
  const abs = (n) => (n < 0n ? -n : n);
  const far = abs(last[0] * denominator - numerator * last[1]) * between[1];
  const other = abs(between[0] * denominator - numerator * between[1]) * last[1];
  return far <= other ? last : between;
}

const TRIED = [
  [64, 1e-8],
  [5000, 1e-8],
  [64, 0.005 / 64],
  [5000, 1e-6],
];

/** Return `1/2`; `~1/3` for the nearest that the kernel can draw; "" for neither. */
export function fraction(given) {
  const x = reduced(given);
  if (isZero(x) || isOne(x)) return String(x.n);
  if (x.e <= 10) return `${x.n}/${1n << BigInt(x.e)}`;
  const number = toFloat(x);
  if (number < 1e-9) return "";
  for (const [limit, tolerance] of TRIED) {
    const [numerator, denominator] = nearestFraction(number, limit);
    const quotient = Number(numerator) / Number(denominator);
    if (numerator && Math.abs(quotient / number - 1) < tolerance && denominator > 1n) {
      return `~${numerator}/${denominator}`;
    }
  }
  const whole = Math.round(1 / number);
  return whole > 1 && Math.abs(1 / whole / number - 1) < 0.005 ? `~1/${whole}` : "";
}

/** Return the fraction of an exact share; nothing for bounds. */
export const boundsFraction = ([lower, upper]) => (equal(lower, upper) ? fraction(lower) : "");
