// until waits for a condition, and says what it waited for when it does not come.
export async function until(what, condition) {
  for (const end = Date.now() + 20_000; Date.now() < end;) {
    const found = await condition();
    if (found) {
      return found;
    }
    await new Promise((resolve) => { setTimeout(resolve, 20); });
  }
  throw new Error(`this did not come in 20 seconds: ${what}`);
}
