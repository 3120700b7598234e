// Searches the headings of the manual, which headings.js holds. Without scripts there is no
// search, and all else works.
'use strict';
const box = document.querySelector('.search');
const input = document.getElementById('search');
const found = document.getElementById('found');

function show() {
  const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
  found.replaceChildren();
  if (words.length === 0) return;
  const fits = (h) => words.every((word) => (h.text + ' ' + h.page).toLowerCase().includes(word));
  const hits = headings.filter(fits).slice(0, 20);
  for (const hit of hits) {
    const link = document.createElement('a');
    link.href = hit.url;
    link.textContent = hit.text;
    link.addEventListener('click', () => { found.replaceChildren(); });
    const page = document.createElement('small');
    page.textContent = hit.page;
    link.append(page);
    const item = document.createElement('li');
    item.append(link);
    found.append(item);
  }
  if (hits.length === 0) {
    const item = document.createElement('li');
    item.textContent = 'No heading has these words.';
    found.append(item);
  }
}

box.hidden = false;
input.addEventListener('input', show);
input.addEventListener('keydown', (event) => {
  if (event.key === 'Enter') found.querySelector('a')?.click();
  if (event.key === 'Escape') { input.value = ''; show(); }
});
document.addEventListener('keydown', (event) => {
  if (event.key === '/' && event.target !== input) { event.preventDefault(); input.focus(); }
});
