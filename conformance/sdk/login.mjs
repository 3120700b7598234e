// Where the SDK gets its tokens from: the component that Firebase Authentication
// is for an app, with tokens that a server of one's own has signed.
export class Login {
  constructor() {
    this.token = null;
    this.next = null;
    this.listeners = [];
  }

  // attach makes this the authentication of an app, before its database is made.
  attach(app, addComponent, token) {
    this.token = token;
    addComponent(app, {
      name: 'auth-internal',
      type: 'PRIVATE',
      instantiationMode: 'LAZY',
      multipleInstances: false,
      serviceProps: {},
      onInstanceCreated: null,
      instanceFactory: () => ({
        getUid: () => null,
        getToken: async (again) => {
          if (again && this.next !== null) {
            this.token = this.next;
          }
          return this.token === null ? null : { accessToken: this.token };
        },
        addAuthTokenListener: (listener) => {
          this.listeners.push(listener);
          listener(this.token);
        },
        removeAuthTokenListener: (listener) => {
          this.listeners = this.listeners.filter((other) => other !== listener);
        },
      }),
    });
  }

  // signIn changes the user; null is nobody.
  signIn(token) {
    this.token = token;
    this.listeners.forEach((listener) => listener(token));
  }

  // renewBy sets the token that is used when the present one has expired.
  renewBy(token) {
    this.next = token;
  }
}
