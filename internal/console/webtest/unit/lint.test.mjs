import assert from 'node:assert/strict';
import { test } from 'node:test';
import { lint } from '../lint.mjs';

test('the lint names what must not be in the page', () => {
  for (const line of ["x.innerHTML = key", "x.insertAdjacentHTML('a', b)", 'document.write(x)', 'eval(x)', 'new Function(x)', 'a.href = key', "a.setAttribute('href', x)", "a.setAttribute('onclick', x)", 'location = x', 'location.assign(x)', "fetch('https://evil.example')", 'document.cookie', "localStorage.setItem('session', x)", "setTimeout('x()')", "x.style = 'a'"]) {
    assert.equal(lint('a.js', line).length, 1, line);
  }
  assert.deepEqual(lint('a.js', "x.textContent = key; x.style.top = y;"), []);
  assert.equal(lint('index.html', '<p style="x">').length, 1);
  assert.equal(lint('index.html', '<script>x</script>').length, 1);
  assert.equal(lint('core/a.js', "import { x } from '../lib/x.js'").length, 1);
  assert.equal(lint('core/a.js', '\n'.repeat(300)).length, 1);
});
