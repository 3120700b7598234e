// The rules of the servers. What checks write without a thought for rules is below
// /open.
const user = 'auth !== null && auth.uid === $uid';

export const rules = {
  rules: {
    open: {
      '.read': true,
      '.write': true,
      $check: { '.indexOn': ['.value', 'n', 'p/q'] },
    },
    user: { $uid: { '.read': user, '.write': user } },
    numbers: { '.read': true, '.write': true, $key: { '.validate': 'newData.isNumber()' } },
    shown: { '.read': true },
    room: { '.read': "root.child('door').val() === 'open'" },
  },
};
